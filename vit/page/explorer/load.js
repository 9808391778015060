// Files from the server: first a photo's explanation, then more maps of it, and what was asked for.

const root = element.querySelector(".explorer");
const seen = new Set(); // addresses of the files that were read
let latest = null; // the address of the explanation that is wanted

async function load() {
  const url = props.value?.explanation?.url;
  if (!url || latest === url) return;
  latest = url;
  try {
    await open(url);
  } catch (error) {
    if (latest === url) fail(`The map could not be fetched (${error.message}): try again.`);
  }
}

function fail(text) {
  part("failed").textContent = text;
}

// The server's answer to a question, which may be about a photo that is no longer shown.
async function receive({ asked, maps, patch, arrays }) {
  if (asked.number === saving) setSaving(null);
  if (arrays) download(arrays.url, arrays.orig_name);
  try {
    for (const file of maps ?? []) await receiveMap(file, asked.explanation);
    if ("token" in asked) await receivePatch(patch, asked);
  } catch (error) {
    fail(`A map could not be fetched (${error.message}): try again.`);
  }
}

async function receiveMap({ url }, explanation) {
  if (explained?.url !== explanation || seen.has(url)) return;
  seen.add(url);
  const { tensors } = await readFile(url);
  if (explained.url !== explanation) return;
  Object.assign(explained.maps, tensors);
  root.dataset.maps = Object.keys(explained.maps).length;
  change();
}

async function receivePatch(file, { explanation, token }) {
  const tensors = file && (await readFile(file.url)).tensors;
  if (explained?.url !== explanation) return;
  if (tensors) explained.asked.set(token, tensors);
  else if (view.token === token) view.token = firstToken();
  change();
  ask(); // for another that was pinned meanwhile
}

async function open(url) {
  const file = await readFile(url);
  const picture = await createImageBitmap(new Blob([file.tensors.photo.data], { type: "image/jpeg" }));
  if (latest !== url) return; // another photo was faster
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
  requestAnimationFrame(() => setTimeout(() => latest === url && trigger("ask_maps", { explanation: url }))); // once it is seen
}

listen();
window.addEventListener("vit-answer", ({ detail }) => detail && receive(detail));
watch("value", load);
load();
if (linked.has("example") || linked.has("model")) {
  trigger("follow_link", { example: linked.get("example"), model: linked.get("model") });
}
