// The explorer: one `view` says what is shown, `render` shows it, everything else changes the view.

const part = (name) => element.querySelector(`[data-part="${name}"]`);
const canvas = part("photo"), sheetCanvas = part("sheet-canvas");
const view = {
  map: "attention", layer: Infinity, head: "mean", // Infinity: the last
  token: 0, direction: "looks_at", // whose look; a pinned patch's token, or the class token
  chosen: 0, against: null, // classes by their rank among the predictions
  opacity: 60, grid: true, smooth: false, mark: false, leaveOut: false, scale: "own",
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

// ---- what is shown

// The maps of the current view, those without outliers where they are to be left out; null while they are on their way.
function stack() {
  const { map, token, direction, chosen, against, leaveOut } = view;
  const known = map === "relevance" ? Object.keys(explained.maps).length : map === "rollout" ? !!explained.maps.rollout : explained.asked.has(token);
  return remember("stack", [explained.url, map, token, direction, chosen, against, leaveOut, known].join(), () => {
    const found = explained.stack(view);
    if (!found || !leaveOut) return found;
    const layers = found.layers.map((columns, layer) => columns.map((values) => withoutOutliers(values, explained.outliers(layer))));
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
  if (maps) drawMap(context, under, heat(values, explained.grid, scale, options(maps)), box, { opacity, smooth: view.smooth });
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
  const ratio = window.devicePixelRatio || 1, [width, height] = explained.size;
  const room = canvas.parentElement.clientWidth, tallest = Math.max(240, Math.min(560, window.innerHeight * 0.75));
  const shown = Math.max(1, Math.min(room, (tallest * width) / height));
  const size = [Math.round(shown * ratio), Math.max(1, Math.round(((shown * height) / width) * ratio))];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  canvas.style.width = `${shown}px`;
  return size;
}

const boxOn = ([width, height]) => explained.box.map((side, index) => (index % 2 ? (side / explained.size[1]) * height : (side / explained.size[0]) * width));
const pixelRatio = () => canvas.width / canvas.clientWidth || 1;

function drawMarks(context, box, layer, ratio) {
  const { grid, prefix } = explained;
  if (view.grid) drawGrid(context, box, grid, ratio);
  if (view.mark) explained.outliers(layer).forEach((flagged, patch) => flagged && cross(context, patchBox(patch, box, grid), ratio));
  if (isPinned()) outline(context, patchBox(view.token - prefix.length, box, grid), "#4ade80", ratio);
}

const isPinned = () => view.token >= explained.prefix.length;
const patchName = (patch) => `patch ${patch} (row ${Math.floor(patch / explained.grid[1])}, column ${patch % explained.grid[1]})`;
const percent = (share, digits = 3) => `${Number((share * 100).toPrecision(digits))} %`;
const amount = (value, maps) => (maps.percent ? percent(value) : Number(value.toPrecision(3)).toString());

function showScale(maps, scale) {
  part("scale").hidden = !maps;
  if (!maps) return;
  const { colours, signed } = options(maps);
  const context = part("colours").getContext("2d"), pixels = context.createImageData(256, 1);
  for (let step = 0; step < 256; step++) pixels.data.set([...colours.subarray((signed ? 768 : 0) + step * 3).subarray(0, 3), 255], step * 4);
  context.putImageData(pixels, 0, 0);
  part("low").textContent = amount(scale[0], maps);
  part("high").textContent = amount(scale[1], maps);
}

function showPatch(maps, values) {
  const patch = hovered ?? (isPinned() ? view.token - explained.prefix.length : null);
  part("patch").hidden = patch === null;
  if (patch === null) {
    part("patch-text").textContent = "Point at a patch to see its share; click to pin it.";
    return;
  }
  const { width, height } = explained.picture;
  const [x, y, across, down] = patchBox(patch, boxOn([width, height]), explained.grid);
  const context = part("patch").getContext("2d");
  context.clearRect(0, 0, 112, 112);
  context.drawImage(explained.picture, x, y, across, down, 0, 0, 112, 112);
  part("patch-text").textContent = `${capital(patchName(patch))}${values ? `: ${share(patch, values, maps)}` : ""}.`;
}

function share(patch, values, maps) {
  const left = view.leaveOut ? explained.outliers(view.layer) : [];
  if (left[patch]) return "left out as an outlier";
  const others = [...values].filter((_, other) => !left[other]);
  const rank = others.filter((value) => value > values[patch]).length + 1;
  return `${amount(values[patch], maps)}, the ${rank === 1 ? "" : `${ordinal(rank)} `}highest of ${others.length}`;
}

const ordinal = (number) => number + (number % 100 > 10 && number % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][number % 10] ?? "th");
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function showText(maps) {
  const { layer, map } = view, last = explained.layers - 1;
  part("title").textContent = titleText();
  const shares = maps?.elsewhere?.[layer][column(maps)];
  part("elsewhere").textContent = shares ? elsewhere(shares) : map === "rollout" ? "Rollout follows attention through all layers up to this one." :
    map === "relevance" ? "Relevance has no unit: what counts is one patch against another." : "";
  part("seen").textContent = explained.cropped ? "The model saw the lit part of the photo only: its preparation cuts the rest off." : "";
  part("layer-number").textContent = `layer ${layer} of 0–${last}`;
  part("layer").setAttribute("aria-valuetext", `layer ${layer} of 0 to ${last}`);
  showOutliers(maps, explained.outliers(layer));
  if (explained.lens.length) showLens(layer);
  [...part("decided").children].forEach((bar, index) => bar.classList.toggle("now", index === layer));
}

const titleText = () => `${capital(mapName())}, layer ${view.layer}${view.map === "relevance" ? "" : `, ${headName(view.head)}`}`;

function showOutliers(maps, flagged) {
  const values = maps?.layers[view.layer][column(maps)], count = flagged.reduce((sum, one) => sum + one, 0);
  const share = values?.reduce((sum, value, patch) => sum + (flagged[patch] ? value : 0), 0);
  const taken = !maps?.percent ? "" : view.leaveOut ? " left out" : `, ${percent(share)} together`;
  part("outliers").textContent = count ? `Outlier patches in this layer, with more than twice the usual norm: ${count}${taken}.` : "No outlier patches in this layer.";
}

function mapName() {
  const name = (rank) => explained.predictions[rank].label;
  if (view.map === "rollout") return "rollout to what the classifier reads";
  if (view.map === "relevance") return view.against === null ? `relevance for ${name(view.chosen)}` : `${name(view.chosen)} (red) against ${name(view.against)} (blue)`;
  const who = isPinned() ? patchName(view.token - explained.prefix.length) : "the class token";
  return view.direction === "looks_at" ? `what ${who} looks at` : `what looks at ${who}`;
}

const headName = (head) => (head === "mean" ? "mean of the heads" : head === "max" ? "maximum of the heads" : `head ${head}`);

function elsewhere(shares) {
  const who = isPinned() ? "this patch" : "the class token", looks = view.direction === "looks_at";
  const listed = explained.prefix.map((name, token) => {
    const itself = !isPinned() && token === 0;
    return `${percent(shares[token])} ${looks ? "to" : "from"} ${itself ? "itself" : prefixName(name)}`;
  });
  if (!listed.length) return "";
  const text = `Besides the patches, ${who} ${looks ? "gives" : "gets"} ${listed.join(", ")}`;
  return looks ? `${text}.` : `${text}: shares of each one's own look.`;
}

const prefixName = (name) => (name.startsWith("register") ? name : `the ${name} token`);

function showLens(layer) {
  part("lens-title").textContent = layer === explained.layers - 1 ? "After this layer, the last, the classifier says:" : `If layer ${layer} were the last, the classifier would say:`;
  [...part("lens-list").children].forEach((row, place) => {
    const [label, probability] = explained.lens[layer][place];
    row.style.setProperty("--share", probability);
    row.firstChild.textContent = label;
    row.lastChild.textContent = percent(probability);
  });
}

// ---- the sheet of layers × heads

function drawSheet(maps) {
  showCells(maps);
  const ratio = window.devicePixelRatio || 1, cells = part("cells"), first = cells.querySelector("button");
  const [width, height] = [Math.round(cells.clientWidth * ratio), Math.round(cells.clientHeight * ratio)];
  if (!first || !width || !height) return;
  const key = [cached.stack.key, width, height, view.scale, view.smooth].join();
  remember("sheet", key, () => {
    [sheetCanvas.width, sheetCanvas.height] = [width, height];
    const context = sheetCanvas.getContext("2d");
    context.imageSmoothingEnabled = view.smooth;
    const from = cells.getBoundingClientRect();
    for (const button of cells.querySelectorAll("button")) {
      const { row, layer } = button.dataset, values = maps.layers[layer][row];
      const at = button.getBoundingClientRect();
      const colours = heat(values, explained.grid, scaleOf(maps, values), options(maps));
      context.drawImage(colours, (at.left - from.left + 2) * ratio, (at.top - from.top + 2) * ratio, (at.width - 4) * ratio, (at.height - 4) * ratio);
    }
    return true;
  });
  const now = column(maps);
  for (const button of cells.querySelectorAll("button")) {
    const chosen = Number(button.dataset.layer) === view.layer && Number(button.dataset.row) === now;
    button.setAttribute("aria-pressed", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
}

// The buttons over the sheet: one for each layer and head, or class.
function showCells(maps) {
  remember("cells", [explained.layers, explained.grid, ...maps.columns].join("|"), () => {
    const rows = maps.columns.flatMap((name, row) => {
      const head = typeof name === "number" ? `head ${name}` : name;
      const title = make("span", { className: "row-name", textContent: head, title: head });
      const buttons = Array.from({ length: explained.layers }, (_, layer) =>
        make("button", { type: "button", title: `Layer ${layer}, ${head}`, ariaLabel: `Layer ${layer}, ${head}`, onclick: () => pick(layer, row) }, { row, layer }));
      return [title, ...buttons];
    });
    const numbers = Array.from({ length: explained.layers }, (_, layer) => make("span", { className: "layer-name", textContent: layer }));
    const cells = part("cells");
    cells.style.setProperty("--layers", explained.layers);
    cells.style.setProperty("--shape", explained.grid[1] / explained.grid[0]);
    cells.replaceChildren(make("span", { className: "row-name", textContent: "layer" }), ...numbers, ...rows);
    return true;
  });
  part("sheet-title").textContent = view.map === "relevance" ? "All layers and classes" : "All layers and heads";
}

function pick(layer, row) {
  const maps = stack();
  if (view.map !== "relevance") view.head = maps.columns[row];
  else if (maps.ranks) view.chosen = maps.ranks[row];
  change({ layer });
}

function make(tag, properties, dataset = {}) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  Object.assign(made.dataset, dataset);
  return made;
}

// ---- changing the view

let frame = 0;
function change(changes = {}) {
  Object.assign(view, changes);
  frame ||= requestAnimationFrame(() => { frame = 0; render(); });
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
