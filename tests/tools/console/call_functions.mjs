// Calls functions of the console's modules: reads {"web", "calls": [[module, function, ...arguments]]} in lines, and
// answers each with their values.
import { createInterface } from "node:readline";

for await (const line of createInterface({ input: process.stdin })) {
  const { web, calls } = JSON.parse(line);
  const values = [];
  for (const [module, name, ...given] of calls) {
    const functions = await import(`file://${web}/${module}`);
    values.push(functions[name](...given) ?? null);
  }
  console.log(JSON.stringify(values));
}
