// Another model: it is asked for, and its progress is shown until it is there.

/** @import { Context } from "./dom.js" */

const SOON = 60; // milliseconds, after which a load is worth a word

export const cancelLoad = (/** @type {Pick<Context["ask"], "cancel">} */ { cancel }) =>
  cancel("cancel_load", "choose_model", "follow_link");

/**
 * @param {Context} context
 * @param {"choose_model" | "follow_link"} kind
 * @param {{ model: string | null, example?: string | null, registers?: boolean }} data
 */
export async function load({ store, ask: { ask, cancel } }, kind, data) {
  const source = data.model ?? "";
  const name = store.get().models.find((model) => model.source === source)?.name ?? source;
  /** @type {import("./data/shown.js").Loading} */
  let now = { source, share: null, text: `Loading ${name} …` };
  if (store.get().loading) cancelLoad({ cancel }); // another one was wanted before
  const timer = setTimeout(() => store.set({ loading: now }), SOON);
  const isOurs = () => store.get().loading?.source === source;
  await ask(kind, { registers: false, example: null, ...data }, undefined, ({ share, text }) => {
    now = { source, share: share || null, text };
    if (isOurs()) store.set({ loading: now });
  });
  clearTimeout(timer);
  if (isOurs()) store.set({ loading: null });
}
