// What the explorer says: titles, numbers, and the texts beside the canvas.

const isPinned = () => view.token >= explained.prefix.length;
const patchName = (patch) =>
  `patch ${patch} (row ${Math.floor(patch / explained.grid[1])}, column ${patch % explained.grid[1]})`;
const percent = (share, digits = 3) => `${Number((share * 100).toPrecision(digits))} %`;
const amount = (value, maps) => (maps.percent ? percent(value) : Number(value.toPrecision(3)).toString());

function showScale(maps, scale) {
  part("scale").hidden = !maps;
  if (!maps) return;
  const { colours, signed } = options(maps);
  const context = part("colours").getContext("2d"),
    pixels = context.createImageData(256, 1);
  for (let step = 0; step < 256; step++)
    pixels.data.set([...colours.subarray((signed ? 768 : 0) + step * 3).subarray(0, 3), 255], step * 4);
  context.putImageData(pixels, 0, 0);
  part("low").textContent = amount(scale[0], maps);
  part("high").textContent = amount(scale[1], maps);
}

function showPatch(maps, values) {
  const patch = hovered ?? (isPinned() ? view.token - explained.prefix.length : null);
  part("patch").hidden = patch === null;
  if (patch === null) {
    part("patch-text").textContent = "Point at a patch to read its value; click to pin it.";
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

const ordinal = (number) =>
  number + (number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th"));
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function showText(maps) {
  const { layer, map } = view,
    last = explained.layers - 1;
  part("title").textContent = titleText();
  const shares = maps?.elsewhere?.[layer][column(maps)];
  part("elsewhere").textContent = shares
    ? elsewhere(shares)
    : map === "rollout"
      ? "Rollout follows attention through all layers up to this one."
      : map === "relevance"
        ? "Relevance has no unit: what counts is one patch against another."
        : "";
  part("seen").textContent = explained.cropped
    ? "The model saw the lit part of the photo only: its preparation cuts the rest off."
    : "";
  part("layer-number").textContent = `layer ${layer} of 0–${last}`;
  part("layer").setAttribute("aria-valuetext", `layer ${layer} of 0 to ${last}`);
  showOutliers(maps, explained.outliers(layer));
  if (explained.lens.length) showLens(layer);
  [...part("decided").children].forEach((bar, index) => bar.classList.toggle("now", index === layer));
}

const titleText = () =>
  `${capital(mapName())}, layer ${view.layer}${view.map === "relevance" ? "" : `, ${headName(view.head)}`}`;

function showOutliers(maps, flagged) {
  const values = maps?.layers[view.layer][column(maps)],
    count = flagged.reduce((sum, one) => sum + one, 0);
  const share = values?.reduce((sum, value, patch) => sum + (flagged[patch] ? value : 0), 0);
  const taken = !maps?.percent ? "" : view.leaveOut ? " left out" : `, ${percent(share)} together`;
  part("outliers").textContent = count
    ? `Outlier patches in this layer, with more than twice the usual norm: ${count}${taken}.`
    : "No outlier patches in this layer.";
}

function mapName() {
  const name = (rank) => explained.predictions[rank].label;
  if (view.map === "rollout") return "rollout to what the classifier reads";
  if (view.map === "relevance")
    return view.against === null
      ? `relevance for ${name(view.chosen)}`
      : `${name(view.chosen)} (red) against ${name(view.against)} (blue)`;
  const who = isPinned() ? patchName(view.token - explained.prefix.length) : "the class token";
  return view.direction === "looks_at" ? `what ${who} looks at` : `what looks at ${who}`;
}

const headName = (head) =>
  head === "mean" ? "mean of the heads" : head === "max" ? "maximum of the heads" : `head ${head}`;

function elsewhere(shares) {
  const who = isPinned() ? "this patch" : "the class token",
    looks = view.direction === "looks_at";
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
  part("lens-title").textContent =
    layer === explained.layers - 1
      ? "After this layer, the last, the classifier says:"
      : `If layer ${layer} were the last, the classifier would say:`;
  [...part("lens-list").children].forEach((row, place) => {
    const [label, probability] = explained.lens[layer][place];
    row.style.setProperty("--share", probability);
    row.firstChild.textContent = label;
    row.lastChild.textContent = percent(probability);
  });
}
