// The variables of a Player test: each holds one round, and so the state that the round returned.

import { questionsOf, responseOf, returnedState } from "./recorded_call.js";

export class Variables {
  #states = new Map();
  #names = new Set();
  last = undefined;

  add(round, from, statement) {
    const { result } = responseOf(round);
    const isCheckpoint = result?.resultType === "input_required" && Object.keys(questionsOf(round)).length === 0;
    const variable = { name: this.#unused(baseName(responseOf(round))), round, from, statement, isCheckpoint };
    const state = returnedState(round);
    if (state !== undefined) this.#states.set(state, variable);
    if (round.branch === undefined) this.last = variable;
    return variable;
  }

  holderOf(state) {
    return this.#states.get(state);
  }

  /** Return the variable whose state differs from this one in one character, and the position. */
  damageOf(damaged) {
    for (const [state, { name }] of this.#states) {
      if (state.length !== damaged.length) continue;
      const differing = [...state].flatMap((character, index) => (character === damaged[index] ? [] : [index]));
      if (differing.length === 1) return { name, position: differing[0] };
    }
    return undefined;
  }

  #unused(base) {
    let name = base;
    for (let number = 2; this.#names.has(name); number += 1) name = `${base}_${number}`;
    this.#names.add(name);
    return name;
  }
}

function baseName({ result, error }) {
  if (error !== undefined || result?.isError) return "refused";
  return { task: "task", input_required: "asked" }[result?.resultType] ?? "done";
}
