// Finds what violates a rule of accessibility.
import { readFileSync } from "node:fs";

/** Return the violations in a page or frame, and the number of rules that it passes. */
export async function audit(frame) {
  const isLoaded = await frame.evaluate(() => "axe" in window);
  // The debugger runs the script: a policy of the page would refuse an element.
  if (!isLoaded) await frame.evaluate(readFileSync("node_modules/axe-core/axe.min.js", "utf8"));
  return frame.evaluate(async () => {
    // Passed rules have many elements, and writing a selector for each takes long.
    const { violations, passes } = await window.axe.run({ resultTypes: ["violations"] });
    return { violations, passed: passes.length };
  });
}
