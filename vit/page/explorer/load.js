// Files from the server: first a photo's explanation, then more maps of it, and what was asked for.

const root = element.querySelector(".explorer");
const seen = new Set(); // addresses of the files that were read
let latest = { url: null, opened: null }; // the explanation that is wanted, and the promise of it

async function load() {
  const value = props.value;
  if (!value?.explanation) return;
  const url = value.explanation.url;
  try {
    if (latest.url !== url) latest = { url, opened: open(url) };
    await latest.opened;
    for (const file of value.maps ?? []) {
      if (explained?.url !== url || seen.has(file.url)) continue;
      seen.add(file.url);
      const { tensors } = await readFile(file.url);
      if (explained.url !== url) return;
      Object.assign(explained.maps, tensors);
      root.dataset.maps = Object.keys(explained.maps).length;
      change();
    }
  } catch (error) {
    if (latest.url === url) fail(`The map could not be fetched (${error.message}): try again.`);
  }
}

function fail(text) {
  part("failed").textContent = text;
}

// The server's answer to `ask` or `saveArrays`, for the photo that was shown then.
async function receive({ asked, patch, arrays }) {
  if (asked.number === saving) setSaving(null);
  if (arrays) download(arrays.url, arrays.orig_name);
  if (asked.explanation !== explained?.url || "heads" in asked) return;
  const token = explained.prefix.length + asked.patch;
  try {
    if (patch) explained.asked.set(token, (await readFile(patch.url)).tensors);
  } catch (error) {
    fail(`The patch could not be fetched (${error.message}): try again.`);
  }
  if (!explained.asked.has(token) && view.token === token) view.token = firstToken();
  change();
  ask(); // for another that was pinned meanwhile
}

async function open(url) {
  const file = await readFile(url);
  const picture = await createImageBitmap(new Blob([file.tensors.photo.data], { type: "image/jpeg" }));
  if (latest.url !== url) return; // another photo was faster
  explained?.picture.close();
  explained = new Explained(file, picture);
  explained.url = url;
  seen.clear();
  fail("");
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
  if (root.getBoundingClientRect().top > window.innerHeight / 2) root.scrollIntoView(); // on a phone, below the examples
  announce();
  ask();
}

listen();
window.addEventListener("vit-answer", ({ detail }) => detail && receive(detail));
watch("value", load);
load();
