// The state of the console, in one object. Views follow its members, and calls.

/**
 * @typedef {Object} Call  A call of a tool, a prompt or a resource, over all its rounds.
 * @property {"tool"|"prompt"|"resource"} kind
 * @property {string} name           for a resource, its URI
 * @property {Object|null} feature   the definition from the list
 * @property {Round[]} rounds
 * @property {Object} values         what was typed into the form: the arguments, or the variables of a template
 * @property {Object} [task]         the latest result of tasks/get
 * @property {{requests: Object, responses: Object}[]} taskUpdates   the answers to the task's questions
 *
 * @typedef {Object} Round  One request of a call, and its response (see `createClient`).
 * @property {number|null} durationMs    null while the response is awaited
 * @property {Object|null} exchange      what happened on the server, from the console API; comes later
 * @property {Object|null} state         the decoded requestState of the response, from the console API; comes later
 * @property {Record<string, any>} answers   the input responses that the request carried, by key
 * @property {string|null} sentState     the requestState that the request carried
 * @property {number|null} follows   the number of the round whose state or question it goes on with
 * @property {number} [branch]       of a round that belongs to an experiment: the number of the round that began it
 * @property {string} [experiment]   such as "resent" or "older state"
 */

/** Return a store: `update` changes members of the state, `follow` hears of them by member or topic ("call:c3"). */
export function createStore(state) {
  const topics = new EventTarget(); // a view that fails stops neither the other views nor the call
  const notify = (topic) => topics.dispatchEvent(new Event(topic));
  return {
    state, notify,
    update(changes) {
      Object.assign(state, changes);
      Object.keys(changes).forEach(notify);
    },
    /** Call `listener` now, and at every change of a topic until the signal aborts. */
    follow(topic, listener, signal) {
      topics.addEventListener(topic, () => listener(state), { signal });
      listener(state);
    },
  };
}
