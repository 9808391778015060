// What the server answers to an explorer comes as the value of a component of its own.

import { answer } from "./main.js";

/** @param {import("./early.js").Component} component */
export function start({ props, watch }) {
  const hear = () => answer(props.slot, props.value);
  watch("value", hear);
  hear();
}
