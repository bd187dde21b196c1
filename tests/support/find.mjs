// Finds what a user sees, with functions that wait in the page: a locator of Playwright looks at every element each time,
// and asks again through this process.

const EVERY = { polling: 30 }; // ms; the default would have the page drawn each time

export const sees = (frame, text) => frame.waitForFunction((wanted) => {
  const shown = document.body.innerText.replaceAll(/\s+/g, " ");
  return shown.toLowerCase().includes(wanted.toLowerCase());
}, text, EVERY);

/** Wait until a visible element fits the selector; with `isGone`, until none does. */
export const waits = (frame, selector, isGone = false) => frame.waitForFunction(([wanted, none]) => {
  const isVisible = (each) => each.checkVisibility({ visibilityProperty: true }) && each.getClientRects().length > 0;
  return [...document.querySelectorAll(wanted)].some(isVisible) !== none;
}, [selector, isGone], EVERY);

/** Wait until a function of the page returns true. */
export const holds = (frame, test, given) => frame.waitForFunction(test, given, EVERY);

/** Act on the last field with a label. */
export const inField = (frame, label, act) => onElement(frame, (wanted) => {
  const textOf = (each) => each.textContent.replaceAll(/\s+/g, " ").trim();
  const namesOf = (each) => [each.ariaLabel, ...[...each.labels].map(textOf)];
  return [...document.querySelectorAll("main :is(input, select, textarea)")].findLast((each) => namesOf(each).includes(wanted));
}, label, act);

export const onButton = (frame, name, act) => onElement(frame, (wanted) => {
  const nameOf = (each) => each.ariaLabel ?? each.innerText.trim();
  const isVisible = (each) => each.checkVisibility({ visibilityProperty: true });
  return [...document.querySelectorAll("button")].findLast((each) => isVisible(each) && nameOf(each) === wanted);
}, name, act);

/** Act on what a function finds in the page. An element that the page replaces meanwhile is looked for again. */
async function onElement(frame, find, given, act) {
  for (;;) {
    const found = await frame.waitForFunction(find, given, EVERY);
    try {
      return await act(found);
    } catch (error) {
      if (!error.message.includes("not attached")) throw error;
    }
  }
}
