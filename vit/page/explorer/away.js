// What visitors take away: pictures, arrays, a link.

function download(url, name) {
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

async function savePicture(drawn, name) {
  const url = URL.createObjectURL(await drawn.convertToBlob({ type: "image/png" }));
  download(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const fileName = (what) => `${explained.name}-${what}.png`.replaceAll(/[^\w.-]+/g, "_");

// The photo at its own size with the map over it, and below it what it is.
function saveView() {
  const maps = stack();
  if (!maps) return;
  const { width, height } = explained.picture, foot = 64;
  const drawn = new OffscreenCanvas(Math.max(width, 480), height + foot), context = drawn.getContext("2d");
  paper(context);
  const values = maps.layers[view.layer][column(maps)], scale = scaleOf(maps, values);
  drawOn(context, 0, 0, width, height, maps, values, scale);
  legend(context, 8, height + 8, maps, scale, `${part("title").textContent} · ${explained.model}`);
  savePicture(drawn, fileName(`${view.map}-layer-${view.layer}`));
}

// The current map in all layers.
function saveSheet() {
  const maps = stack();
  if (!maps) return;
  const [wide, tall] = explained.size, cell = 240, title = 24, gap = 8;
  const width = Math.max(96, Math.round(wide >= tall ? cell : (cell * wide) / tall)), height = Math.round(wide >= tall ? (cell * tall) / wide : cell);
  const count = explained.layers, columns = [4, 3, 5].find((number) => count % number === 0) ?? 4, rows = Math.ceil(count / columns);
  const drawn = new OffscreenCanvas(Math.max(480, columns * (width + gap) + gap), rows * (height + title + gap) + 72), context = drawn.getContext("2d");
  paper(context);
  const which = column(maps);
  for (let layer = 0; layer < count; layer++) {
    const values = maps.layers[layer][which], scale = scaleOf(maps, values);
    const x = gap + (layer % columns) * (width + gap), y = Math.floor(layer / columns) * (height + title + gap) + title;
    context.fillStyle = "black";
    context.font = "13px system-ui, sans-serif";
    const span = view.scale === "own" ? `   ${amount(scale[0], maps)} – ${amount(scale[1], maps)}` : "";
    context.fillText(`layer ${layer}${span}`, x, y - 6);
    drawOn(context, x, y, width, height, maps, values, scale);
  }
  const shared = view.scale === "own" ? null : scaleOf(maps, maps.layers[0][which]);
  legend(context, gap, drawn.height - 62, maps, shared, `${capital(mapName())}${view.map === "relevance" ? "" : `, ${headName(view.head)}`} · ${explained.model}`);
  savePicture(drawn, fileName(`${view.map}-all-layers`));
}

function paper(context) {
  context.fillStyle = "white";
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
}

function drawOn(context, x, y, width, height, maps, values, scale) {
  const box = boxOn([width, height]), opacity = view.opacity / 100;
  const tile = new OffscreenCanvas(width, height), over = tile.getContext("2d");
  drawMap(over, ground(pictures(explained.picture, width, height), box, opacity), heat(values, explained.grid, scale, options(maps)), box, { opacity, smooth: view.smooth });
  if (view.grid && width > 400) drawGrid(over, box, explained.grid, 1);
  if (isPinned()) outline(over, patchBox(view.token - explained.prefix.length, box, explained.grid), "#4ade80", 1);
  context.drawImage(tile, x, y);
}

function legend(context, x, y, maps, scale, text) {
  context.fillStyle = "black";
  context.font = "13px system-ui, sans-serif";
  context.fillText(text, x, y + 14);
  context.drawImage(part("colours"), x, y + 24, 200, 12);
  const ends = scale ? scale.map((value) => amount(value, maps)) : ["each map's lowest", "highest"];
  context.fillText(ends.join(" – "), x + 210, y + 35);
}

function saveArrays() {
  const { map, chosen, against, head } = view;
  part("save-arrays").disabled = true;
  trigger("save_arrays", {
    label: explained.predictions[chosen]?.index ?? null,
    against: map === "relevance" && against !== null ? explained.predictions[against].index : null,
    heads: head,
    patch: isPinned() ? view.token - explained.prefix.length : null,
  });
}

// ---- the link

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
  const map = words.get("map"), head = words.get("head");
  if (["attention", "rollout"].includes(map) || (map === "relevance" && predictions.length)) view.map = map;
  view.layer = number("layer", layers) ?? view.layer;
  view.head = ["mean", "max"].includes(head) ? head : number("head", heads) ?? view.head;
  if (words.get("direction") === "looked_at_by") view.direction = "looked_at_by";
  if (view.map === "relevance") {
    view.chosen = number("class", predictions.length) ?? 0;
    const against = number("against", predictions.length);
    view.against = against === view.chosen ? null : against;
  }
  const patch = number("patch", patches);
  if (patch !== null && view.map === "attention") view.token = prefix.length + patch;
}
