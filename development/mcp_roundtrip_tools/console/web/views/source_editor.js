// An editor for the files of a function: deploys edited copies, and returns to the files of the project.

import { element, fill, uniqueId } from "../dom.js";
import { awaitNews } from "../news.js";

/** Return the editor of a function's files. */
export function sourceEditor({ api, refresh }, functionName) {
  const place = element("div", { class: "source-editor" }, element("p", { class: "hint" }, "Loading…"));
  load();
  return place;

  async function load() {
    try {
      show(await api.sources(functionName));
    } catch (error) {
      fill(place, element("p", { class: "error" }, error.message));
    }
  }

  function show({ functions, files, isEdited }) {
    const texts = Object.fromEntries(files.map(({ name, text }) => [name, text]));
    const [fileId, textId] = [uniqueId("file"), uniqueId("source")];
    const names = Object.keys(texts).sort((one, other) => (other === "app.py") - (one === "app.py") || one.localeCompare(other));
    const select = element(
      "select",
      {
        id: fileId,
        class: "input",
        onchange: () => {
          editor.value = texts[select.value];
        },
      },
      names.map((name) => element("option", { value: name }, name)),
    );
    const editor = element("textarea", {
      id: textId,
      class: "input code source",
      rows: 18,
      spellcheck: "false",
      wrap: "off",
      value: texts[names[0]] ?? "",
      oninput: () => {
        texts[select.value] = editor.value;
      },
    });
    const status = element(
      "p",
      { class: "hint", role: "status", tabindex: -1 },
      isEdited ? "An edited version runs." : "The files of the project run.",
    );
    const problem = element("pre", { class: "code error", hidden: true });
    const restore = element(
      "button",
      { type: "button", disabled: !isEdited, onclick: () => change(() => api.undeploy(functionName)) },
      "Return to the project’s files",
    );
    const actions = element(
      "div",
      { class: "actions", dataset: { news: status.textContent } },
      element(
        "button",
        { type: "button", class: "primary", onclick: () => change(() => api.deploy(functionName, texts)) },
        "Deploy",
      ),
      restore,
      status,
    );
    fill(
      place,
      element(
        "div",
        { class: "source-head" },
        element("label", { for: fileId }, "File"),
        select,
        element("span", { class: "hint" }, `runs as ${functions.join(", ")}`),
        element("label", { class: "visually-hidden", for: textId }, "Source text"),
      ),
      editor,
      problem,
      actions,
    );

    async function change(request) {
      awaitNews();
      fill(status, "…");
      actions.dataset.news = "";
      problem.hidden = true;
      problem.dataset.news = "";
      try {
        const { isEdited: isNowEdited = false, edited = [] } = (await request()) ?? {};
        restore.disabled = !isNowEdited;
        fill(
          status,
          isNowEdited ? `Deployed: the next invocation runs the edited ${edited.join(", ")}.` : "The files of the project run.",
        );
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
