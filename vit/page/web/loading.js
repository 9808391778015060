// Another model, and what links name: it is asked for, and its progress is shown until it is there.

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
  const timer = source ? setTimeout(() => store.set({ loading: now }), SOON) : 0;
  const isOurs = () => store.get().loading?.source === source;
  await ask(kind, { registers: false, example: null, ...data }, undefined, ({ share, text }) => {
    now = { source, share: share || null, text };
    if (isOurs()) store.set({ loading: now });
  });
  clearTimeout(timer);
  if (isOurs()) store.set({ loading: null });
}

/**
 * The example and the model that a link names, each null where it stays.
 * @param {Context} context
 * @param {import("./data/shown.js").Link} link
 */
export async function follow(context, link) {
  const { store } = context;
  store.set({ following: link });
  await load(context, "follow_link", link);
  if (store.get().following === link) store.set({ following: null });
}

/** What the last link named does not come any more. */
export function stopFollowing(/** @type {Context} */ { store, ask }) {
  if (!store.get().following) return;
  cancelLoad(ask);
  store.set({ following: null });
}

/** A photo was chosen while a link was followed, whose own must not replace it: of the link, the model is left. */
export function followNoFurther(/** @type {Context} */ context, /** @type {string} */ chosen) {
  const { following } = context.store.get();
  if (!following?.example || following.example === chosen) return;
  stopFollowing(context);
  if (following.model) follow(context, { ...following, example: null });
}
