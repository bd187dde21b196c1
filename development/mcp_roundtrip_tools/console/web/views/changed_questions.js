// Questions that changed since they were asked before, with both texts: the functions log their keys only.

const REMEDY = "Use ctx.now for the time, ctx.step for other values, and sorted() for a set.";

/** Return a sentence for each changed question of a request or of a task. */
export function changedQuestions({ changedQuestions: changed = [] } = {}) {
  return changed.map(({ key, before, after, isRepeated }) => {
    const texts = `“${before}” before, “${after}” now.`;
    return isRepeated
      ? `The question ${key} is different in every round, so no answer to it counts: ${texts} ${REMEDY}`
      : `The question ${key} has changed, so the answer to the earlier one does not count: ${texts}`;
  });
}
