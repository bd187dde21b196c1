// What keeps functions of the application from running, above every page.

import { element } from "../dom.js";

/** Return one alert for each problem: the function or the template, and the traceback. */
export function problemList(problems = []) {
  return problems.map(({ name, text }) => element("section", { class: "card problem" },
    element("h2", {}, element("code", {}, name), " does not run until this is corrected"),
    element("pre", { tabindex: 0 }, text)));
}
