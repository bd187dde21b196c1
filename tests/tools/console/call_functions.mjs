// Calls functions of the console's modules: reads [[module, function, ...arguments]], prints their values.
import { readFileSync } from "node:fs";

const { web, calls } = JSON.parse(readFileSync(0, "utf8"));
const values = [];
for (const [module, name, ...given] of calls) {
  const functions = await import(`file://${web}/${module}`);
  values.push(functions[name](...given) ?? null);
}
console.log(JSON.stringify(values));
