// Applies functions of the console's MCP modules to values that a test gives, and prints what they return.
import { readFileSync } from "node:fs";

const { web, calls } = JSON.parse(readFileSync(0, "utf8"));
const results = [];
for (const [module, name, ...args] of calls) {
  const functions = await import(`${web}/mcp/${module}.js`);
  results.push(functions[name](...args));
}
console.log(JSON.stringify(results));
