// A text field with suggestions while typing (ARIA: combobox with a list popup).

import { element, fill, uniqueId } from "../dom.js";

const DELAY_MS = 120;

/**
 * @param {{id: string, value?: string, complete: (text: string) => Promise<string[]>}} options
 */
export function combobox({ id, value, complete }) {
  const listId = uniqueId("suggestions");
  const popup = element("ul", { id: listId, class: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: true });
  const input = element("input", {
    id, class: "input", type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", value: value ?? "",
    "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": listId,
    oninput: () => suggest(DELAY_MS), onkeydown: onKey, onfocus: () => suggest(DELAY_MS), onblur: close,
  });
  let timer = 0;
  let latest = 0;
  let active = -1;

  function suggest(delay) {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const turn = ++latest;
      const values = await complete(input.value).catch(() => []);
      if (turn === latest && document.activeElement === input) show(values);
    }, delay);
  }

  function show(values) {
    const others = values.filter((each) => each !== input.value);
    fill(popup, others.map((text, index) => element("li", {
      id: `${listId}-${index}`, role: "option", "aria-selected": "false",
      onmousedown: (event) => { event.preventDefault(); choose(text); },
    }, text)));
    setOpen(others.length > 0);
  }

  function setOpen(isOpen) {
    active = -1;
    popup.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    input.removeAttribute("aria-activedescendant");
  }

  function close() {
    clearTimeout(timer);
    latest++;
    setOpen(false);
  }

  function choose(text) {
    input.value = text;
    close();
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function move(step) {
    const options = [...popup.children];
    active = (active + step + options.length) % options.length;
    options.forEach((option, index) => option.setAttribute("aria-selected", String(index === active)));
    options[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[active].id);
  }

  function onKey(event) {
    if (popup.hidden) {
      if (event.key === "ArrowDown") suggest(0);
      return;
    }
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(active === -1 ? 0 : -1);
    else if (event.key === "Enter" && active >= 0) choose(popup.children[active].textContent);
    else if (event.key === "Escape") close();
    else {
      if (event.key === "Enter") close(); // it sends the form
      return;
    }
    event.preventDefault();
  }

  return { node: element("div", { class: "combobox" }, input, popup), input };
}
