// Repeats an action until a signal aborts, and not while the page is hidden.

const PAUSE_AFTER_ERROR_MS = 2_000;

/** `action` returns true when nothing is left to do. The interval is between the end of one and the start of the next. */
export async function repeat(action, intervalMs, signal, onError) {
  while (!signal.aborted) {
    let wait = intervalMs;
    try {
      if (!document.hidden && (await action()) === true) return;
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
      wait = Math.max(wait, PAUSE_AFTER_ERROR_MS);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, wait);
      signal.addEventListener("abort", resolve, { once: true });
    });
  }
}
