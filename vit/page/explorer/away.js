// What visitors take away: pictures and arrays.

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

// The photo at its own size, or at the canvas's if that is larger, with the map over it, and below it what it is.
function saveView() {
  const maps = stack();
  if (!maps) return;
  const width = Math.max(explained.picture.width, canvas.width),
    height = Math.max(1, Math.round((width * explained.size[1]) / explained.size[0]));
  const values = maps.layers[view.layer][column(maps)],
    scale = scaleOf(maps, values);
  const words = lines(`${titleText()} · ${explained.model}`, Math.max(width, 480));
  const drawn = new OffscreenCanvas(Math.max(width, 480), height + 48 + words.length * 18),
    context = drawn.getContext("2d");
  paper(context);
  drawOn(context, 0, 0, width, height, maps, values, scale, view.layer);
  legend(context, height, words, maps, scale);
  savePicture(drawn, fileName(`${view.map}-layer-${view.layer}`));
}

// The current map in all layers.
function saveSheet() {
  const maps = stack();
  if (!maps) return;
  const [wide, tall] = explained.size,
    times = 240 / Math.max(wide, tall),
    caption = 24,
    gap = 8;
  const [width, height] = [Math.max(1, Math.round(wide * times)), Math.max(1, Math.round(tall * times))];
  const count = explained.layers,
    columns = [4, 3, 5].find((number) => count % number === 0) ?? 4,
    rows = Math.ceil(count / columns);
  const cell = Math.max(width, 170) + gap,
    across = columns * cell + gap,
    down = rows * (height + caption + gap);
  const words = lines(
    `${capital(mapName())}${view.map === "relevance" ? "" : `, ${headName(view.head)}`} · ${explained.model}`,
    across,
  );
  const drawn = new OffscreenCanvas(across, down + 48 + words.length * 18),
    context = drawn.getContext("2d");
  paper(context);
  const which = column(maps);
  for (let layer = 0; layer < count; layer++) {
    const values = maps.layers[layer][which],
      scale = scaleOf(maps, values);
    const x = gap + (layer % columns) * cell,
      y = Math.floor(layer / columns) * (height + caption + gap) + caption;
    const span = view.scale === "own" ? `   ${amount(scale[0], maps)} – ${amount(scale[1], maps)}` : "";
    write(context, `layer ${layer}${span}`, x, y - 6);
    drawOn(context, x, y, width, height, maps, values, scale, layer);
  }
  legend(context, down, words, maps, view.scale === "own" ? null : scaleOf(maps, maps.layers[0][which]));
  savePicture(drawn, fileName(`${view.map}-all-layers`));
}

const FONT = "13px system-ui, sans-serif";

function write(context, text, x, y) {
  context.fillStyle = "black";
  context.font = FONT;
  context.fillText(text, x, y);
}

// A text as lines of at most this width.
function lines(text, width) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.font = FONT;
  return text.split(" ").reduce((made, word) => {
    const longer = made.length ? `${made.at(-1)} ${word}` : word;
    if (made.length && context.measureText(longer).width <= width - 16) made[made.length - 1] = longer;
    else made.push(word);
    return made;
  }, []);
}

function paper(context) {
  context.fillStyle = "white";
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
}

function drawOn(context, x, y, width, height, maps, values, scale, layer) {
  const box = boxOn([width, height]),
    opacity = view.opacity / 100,
    { grid } = explained;
  const tile = new OffscreenCanvas(width, height),
    over = tile.getContext("2d");
  drawMap(
    over,
    ground(pictures(explained.picture, width, height), box, opacity),
    heat(values, grid, scale, options(maps)),
    box,
    { opacity, smooth: view.smooth },
  );
  if (width > 400 || !view.grid) drawMarks(over, box, layer, 1);
  context.drawImage(tile, x, y);
}

function legend(context, top, words, maps, scale) {
  words.forEach((text, line) => write(context, text, 8, top + 20 + line * 18));
  const y = top + 12 + words.length * 18;
  context.drawImage(part("colours"), 8, y, 200, 12);
  const ends = scale ? scale.map((value) => amount(value, maps)) : ["each map's lowest", "highest"];
  write(context, ends.join(" – "), 218, y + 11);
}

let questions = 0,
  saving = null; // the number of the question for arrays that is under way

function setSaving(number) {
  saving = number;
  part("save-arrays").setAttribute("aria-disabled", number !== null);
}

function saveArrays() {
  if (saving !== null || latest !== explained.url) return;
  const { map, chosen, against, head } = view;
  setSaving(++questions);
  trigger("save_arrays", {
    explanation: explained.url,
    number: questions, // which makes each answer another one
    label: explained.predictions[chosen]?.index ?? null,
    against: map === "relevance" && against !== null ? explained.predictions[against].index : null,
    heads: head,
    patch: isPinned() ? view.token - explained.prefix.length : null,
  });
}
