// A link that opens the same view, and following it.

function link() {
  const { map, layer, head, direction, chosen, against } = view;
  const words = new URLSearchParams({ model: explained.model, map, layer, head });
  if (explained.example) words.set("example", explained.example);
  if (isPinned()) words.set("patch", view.token - explained.prefix.length);
  if (direction !== "looks_at") words.set("direction", direction);
  if (map === "relevance") words.set("class", chosen);
  if (map === "relevance" && against !== null) words.set("against", against);
  return `${location.origin}${location.pathname}?${words}`;
}

async function copyLink() {
  const field = part("link");
  part("link-line").hidden = false;
  field.value = link();
  const kept = explained.example ? "" : " Your own photo is not in it: whoever opens it chooses one first.";
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    part("link-text").textContent = `Copied.${kept}`;
  } catch {
    part("link-text").textContent = `Copy this link.${kept}`;
  }
  part("spoken").textContent = part("link-text").textContent;
}

// What the link asks for, as far as this model and photo have it.
function follow(words) {
  const number = (name, count) => {
    const value = words.get(name);
    return /^\d+$/.test(value ?? "") && Number(value) < count ? Number(value) : null;
  };
  const { layers, heads, predictions, patches, prefix } = explained;
  const map = words.get("map"),
    head = words.get("head");
  if (["attention", "rollout"].includes(map) || (map === "relevance" && predictions.length)) view.map = map;
  view.layer = number("layer", layers) ?? view.layer;
  view.head = ["mean", "max"].includes(head) ? head : (number("head", heads) ?? view.head);
  if (words.get("direction") === "looked_at_by") view.direction = "looked_at_by";
  if (view.map === "relevance") {
    view.chosen = number("class", predictions.length) ?? 0;
    const against = number("against", predictions.length);
    view.against = against === view.chosen ? null : against;
  }
  const patch = number("patch", patches);
  if (patch !== null && view.map === "attention") view.token = prefix.length + patch;
}
