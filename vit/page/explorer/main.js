// The explorer: one `view` says what is shown, `render` shows it, everything else changes the view.

const part = (name) => element.querySelector(`[data-part="${name}"]`);
const canvas = part("photo"),
  sheetCanvas = part("sheet-canvas");
const view = {
  map: "attention",
  layer: Infinity, // the last
  head: "mean",
  token: 0, // whose look: the class token, or a pinned patch's
  direction: "looks_at",
  chosen: 0, // a class, by its rank among the predictions
  against: null, // another class, for the difference
  opacity: 60,
  grid: true,
  smooth: false,
  mark: false,
  leaveOut: false,
  scale: "own",
};
let explained = null; // the photo's explanation; null before the first photo
let hovered = null; // a patch
let playing = null; // a timer
let linked = new URLSearchParams(location.search); // what a link asks for, until its photo is here
const cached = {}; // what a render made and the next may use again, with the key it was made for

function remember(name, key, make) {
  if (cached[name]?.key !== key) cached[name] = { key, made: make() };
  return cached[name].made;
}

// The maps of the current view, those without outliers where they are to be left out; null while they are on their way.
function stack() {
  const { map, token, direction, chosen, against, leaveOut } = view;
  const known = map === "attention" ? explained.asked.has(token) : Object.keys(explained.maps).length;
  return remember("stack", [explained.url, map, token, direction, chosen, against, leaveOut, known].join(), () => {
    const found = explained.stack(view);
    if (!found || !leaveOut) return found;
    const layers = found.layers.map((columns, layer) =>
      columns.map((values) => withoutOutliers(values, explained.outliers(layer))),
    );
    return { ...found, layers };
  });
}

function column(maps) {
  if (view.map === "relevance") return maps.ranks ? maps.ranks.indexOf(view.chosen) : 0;
  return maps.columns.indexOf(view.head);
}

function scaleOf(maps, values) {
  if (view.scale === "own") return range([values], maps.signed);
  return remember("range", cached.stack.key, () => range(maps.layers.flat(), maps.signed));
}

function render() {
  if (!explained) return;
  const maps = stack();
  part("working").hidden = !!maps;
  const size = fit();
  const box = boxOn(size);
  const photos = remember("photos", [explained.url, ...size].join(), () => pictures(explained.picture, ...size));
  const opacity = maps ? view.opacity / 100 : 0;
  const under = remember("ground", [explained.url, ...size, opacity].join(), () => ground(photos, box, opacity));
  const context = canvas.getContext("2d");
  const values = maps?.layers[view.layer][column(maps)];
  const scale = maps && scaleOf(maps, values);
  if (maps)
    drawMap(context, under, heat(values, explained.grid, scale, options(maps)), box, { opacity, smooth: view.smooth });
  else context.drawImage(under, 0, 0);
  drawMarks(context, box, view.layer, pixelRatio());
  if (hovered !== null) outline(context, patchBox(hovered, box, explained.grid), "white", pixelRatio());
  showScale(maps, scale);
  showPatch(maps, values);
  showText(maps);
  showControls();
  clearTimeout(sheetLater);
  sheetLater = setTimeout(() => maps && drawSheet(maps)); // when the photo has been seen
}
let sheetLater = 0;

const options = (maps) => ({ colours: explained.tensors.colours.data, signed: maps.signed, smooth: view.smooth });

// The canvas has the photo's own shape, as large as there is room.
function fit() {
  const ratio = window.devicePixelRatio || 1,
    [width, height] = explained.size;
  const room = canvas.parentElement.clientWidth,
    tallest = Math.max(240, Math.min(560, window.innerHeight * 0.75));
  const shown = Math.max(1, Math.min(room, (tallest * width) / height));
  const size = [Math.round(shown * ratio), Math.max(1, Math.round(((shown * height) / width) * ratio))];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  canvas.style.width = `${shown}px`;
  return size;
}

const boxOn = ([width, height]) =>
  explained.box.map((side, index) =>
    index % 2 ? (side / explained.size[1]) * height : (side / explained.size[0]) * width,
  );
const pixelRatio = () => canvas.width / canvas.clientWidth || 1;

function drawMarks(context, box, layer, ratio) {
  const { grid, prefix } = explained;
  if (view.grid) drawGrid(context, box, grid, ratio);
  if (view.mark)
    explained.outliers(layer).forEach((flagged, patch) => flagged && cross(context, patchBox(patch, box, grid), ratio));
  if (isPinned()) outline(context, patchBox(view.token - prefix.length, box, grid), "#4ade80", ratio);
}

let frame = 0;
function change(changes = {}) {
  Object.assign(view, changes);
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    render();
  });
  announce();
}

let speech = 0;
function announce() {
  clearTimeout(speech);
  speech = setTimeout(() => {
    if (!explained) return;
    const highest = stack() ? `Highest value ${part("high").textContent}.` : "Working this map out.";
    part("spoken").textContent = `${titleText()}. ${highest} ${hovered === null ? "" : part("patch-text").textContent}`;
  }, 400);
}

function make(tag, properties, dataset = {}) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  Object.assign(made.dataset, dataset);
  return made;
}
