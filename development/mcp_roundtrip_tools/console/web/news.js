// Brings what is new into view and gives it the focus, as long as the user waits for it.
//
// A view marks what is new with `data-news`: a name that is another one when there is something else to read. What acts
// for the user calls `awaitNews`. The wait ends when the user does something else, and with a question, which is the
// user's turn: what comes later neither scrolls nor takes the focus. Scrolling is instant, so that nothing moves.

const ELSEWHERE = ["pointerdown", "keydown", "input", "wheel", "touchmove"];
const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta"]);
const FIELDS = [".question :is(input, select, textarea, a.button)", ":is(.question, .questions) button.primary"];

let isAwaited = false;
let attention = null; // the element that had the focus when the wait began, or that got it since
let shown = null; // the news that stays in view until the user does something else

/** Say that the user started something: its news is shown. */
export function awaitNews() {
  isAwaited = true;
  attention = document.activeElement;
}

/** Show the news of a part of the page. */
export function watchNews(part) {
  for (const type of ELSEWHERE) window.addEventListener(type, turnElsewhere, { capture: true, passive: true });
  const marks = { attributes: true, attributeFilter: ["data-news"], attributeOldValue: true };
  new MutationObserver(onChange).observe(part, { childList: true, subtree: true, ...marks });
  // What the server recorded of a round comes later, above what the round asks or returns.
  new ResizeObserver(() => shown?.isConnected && bringIntoView(shown)).observe(part);
}

function turnElsewhere({ key, repeat }) {
  if (MODIFIERS.has(key) || repeat) return;
  isAwaited = false;
  shown = null;
}

function onChange(records) {
  const news = newsOf(records);
  if (news.length > 0 && isAwaited && hasAttention()) show(news.find(fieldOf) ?? news.at(-1));
}

/** Return the visible elements with a new mark. A part that is built again brings the marks that it had. */
function newsOf(records) {
  const added = records.flatMap(({ type, target, addedNodes }) => (type === "attributes" ? [target] : marked(addedNodes)));
  const namesOf = (nodes) => marked(nodes).map((each) => each.dataset.news);
  const before = records.flatMap(({ oldValue, removedNodes }) => [oldValue, ...namesOf(removedNodes)]);
  return added.filter((each) => each.dataset.news && !before.includes(each.dataset.news) && each.checkVisibility());
}

function marked(nodes) {
  const elements = [...nodes].filter((each) => each instanceof Element);
  return elements.flatMap((each) => [each, ...each.querySelectorAll("[data-news]")]).filter((each) => each.dataset.news);
}

/** Whether the focus is where the wait left it, or the element that had it was removed. */
function hasAttention() {
  const { activeElement: current, body } = document;
  return current === body || current === attention || !attention.isConnected;
}

function show(node) {
  shown = node;
  bringIntoView(node);
  const field = fieldOf(node);
  if (!isUsed(node)) (field !== undefined && isInView(field) ? field : headingOf(node)).focus({ preventScroll: true });
  attention = document.activeElement;
  isAwaited = field === undefined;
}

/** Whether the focus is on a control of the node: the user goes on there. */
function isUsed(node) {
  return node.contains(document.activeElement) && document.activeElement.tabIndex >= 0;
}

function bringIntoView(node) {
  const { scrollPaddingTop, scrollPaddingBottom } = getComputedStyle(document.documentElement);
  const room = visualViewport.height - parseFloat(scrollPaddingTop) - parseFloat(scrollPaddingBottom);
  node.scrollIntoView({ block: node.offsetHeight > room ? "start" : "nearest" });
}

function isInView(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return top >= 0 && bottom <= visualViewport.height;
}

/** Return the first field of a question, or else its link or its button; undefined if the node asks nothing. */
function fieldOf(node) {
  return FIELDS.flatMap((each) => [...node.querySelectorAll(each)]).find((each) => each.checkVisibility());
}

function headingOf(node) {
  const heading = node.matches("[tabindex='-1']") ? node : node.querySelector("[tabindex='-1']");
  if (heading === null) node.tabIndex = -1;
  return heading ?? node;
}
