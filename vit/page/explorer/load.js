// Files from the server: first a photo's explanation, then more maps of it, asked patches and arrays.

const root = element.querySelector(".explorer");
const seen = new Set(); // addresses of the files that were read
let latest = { url: null, opened: null }; // the explanation that is wanted, and the promise of it

async function load() {
  const value = props.value;
  if (!value?.explanation) return;
  const { explanation, maps, patch, arrays } = value, url = explanation.url;
  try {
    if (latest.url !== url) latest = { url, opened: open(url) };
    await latest.opened;
    for (const file of maps ?? []) await once(file, url, (tensors) => Object.assign(explained.maps, tensors));
    await once(patch, url, (tensors, about) => explained.asked.set(explained.prefix.length + about.patch, tensors));
  } catch (error) {
    if (latest.url === url) part("spoken").textContent = `The map could not be fetched: ${error.message}`;
  }
  if (arrays && !seen.has(arrays.url)) {
    seen.add(arrays.url);
    download(arrays.url, arrays.orig_name);
  }
  part("save-arrays").disabled = false;
}

async function open(url) {
  const file = await readFile(url);
  const picture = await createImageBitmap(new Blob([file.tensors.photo.data], { type: "image/jpeg" }));
  if (latest.url !== url) return; // another photo was faster
  explained = new Explained(file, picture);
  explained.url = url;
  seen.clear();
  hovered = null;
  view.layer = Math.min(view.layer, explained.layers - 1);
  if (!explained.columns.includes(view.head)) view.head = "mean";
  if (view.map === "relevance" && !explained.predictions.length) view.map = "attention";
  Object.assign(view, { token: firstToken(), direction: "looks_at", chosen: 0, against: null });
  if (linked) {
    follow(linked);
    linked = null;
  }
  Object.assign(root.dataset, { photo: explained.name, maps: 0 });
  part("empty").hidden = true;
  part("body").hidden = false;
  part("link-line").hidden = true;
  fillControls();
  render();
  if (window.innerWidth <= 900) element.scrollIntoView(); // on a phone it lies below the examples
  announce();
  ask();
}

// Read a file of the explanation at `url` the first time it is named.
async function once(file, url, use) {
  if (!file || seen.has(file.url)) return;
  seen.add(file.url);
  const { tensors, about } = await readFile(file.url);
  if (explained?.url !== url) return;
  use(tensors, about);
  root.dataset.maps = Object.keys(explained.maps).length;
  change();
}

listen();
watch("value", load);
load();
