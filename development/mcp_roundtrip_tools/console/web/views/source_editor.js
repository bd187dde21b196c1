// An editor for the files of a function: deploys edited copies, and returns to the files of the project.

import { button, fill, h, uniqueId } from "../dom.js";
import { awaitNews } from "../news.js";

const UNEDITED = "The files of the project run.";

/** Return the editor of a function's files. */
export function sourceEditor({ api, refresh }, functionName) {
  const place = h("div.source-editor", h("p.hint", "Loading…"));
  const load = () => api.sources(functionName).then(show, (error) => { fill(place, h("p.error", error.message)); });
  load();
  return place;

  function show({ functions, files, isEdited }) {
    const texts = Object.fromEntries(files.map(({ name, text }) => [name, text]));
    const names = Object.keys(texts).sort((one, other) => (other === "app.py") - (one === "app.py")); // the others by name
    const [fileId, textId] = [uniqueId("file"), uniqueId("source")];
    const onchange = () => { editor.value = texts[select.value]; };
    const select = h("select.input", { id: fileId, onchange }, names.map((name) => h("option", { value: name }, name)));
    const editor = h("textarea.input.code.source", {
      id: textId, rows: 18, spellcheck: "false", wrap: "off", value: texts[names[0]] ?? "",
      oninput: () => { texts[select.value] = editor.value; },
    });
    const status = h("p.hint", { role: "status", tabindex: -1 }, isEdited ? "An edited version runs." : UNEDITED);
    const problem = h("pre.code.error", { hidden: true });
    const deploy = button("Deploy", () => change(() => api.deploy(functionName, texts)), { class: "primary" });
    const undeploy = () => change(() => api.deploy(functionName, {}));
    const restore = button("Return to the project’s files", undeploy, { disabled: !isEdited });
    const actions = h("div.actions", { dataset: { news: status.textContent } }, deploy, restore, status);
    fill(place,
      h("div.source-head", h("label", { for: fileId }, "File"), select, h("span.hint", `runs as ${functions.join(", ")}`),
        h("label.visually-hidden", { for: textId }, "Source text")),
      editor, problem, actions);

    async function change(request) {
      awaitNews();
      fill(status, "…");
      actions.dataset.news = problem.dataset.news = "";
      problem.hidden = true;
      try {
        const { isEdited: isNowEdited, edited } = await request();
        restore.disabled = !isNowEdited;
        fill(status, isNowEdited ? `Deployed: the next invocation runs the edited ${edited.join(", ")}.` : UNEDITED);
        if (isNowEdited) actions.dataset.news = status.textContent;
        else await load();
        await refresh(); // the lists can differ
      } catch (error) {
        fill(status, "Not deployed.");
        problem.hidden = false;
        fill(problem, error.message);
        problem.dataset.news = error.message;
      }
    }
  }
}
