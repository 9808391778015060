// Controls of the explorer: they are filled for a photo, show the view, and change it.

// What depends on the photo's model: heads, classes, layers.
function fillControls() {
  const { layers, columns, predictions, lens, decided, prefix } = explained;
  part("heads").replaceChildren(
    ...columns.map((head) => choice("vit-head", head, String(head), () => change({ head }))),
  );
  part("layer").max = layers - 1;
  part("model").textContent = explained.model.split("/").at(-1);
  part("predictions").hidden = part("relevance-choice").hidden = part("lens").hidden = !predictions.length;
  part("no-classes").hidden = predictions.length > 0;
  part("class-token").hidden = !prefix.includes("class");
  part("attention-name").textContent = prefix.includes("class") ? "Class attention" : "Attention";
  part("classes").replaceChildren(
    ...predictions.map(({ label, probability }, rank) => {
      const row = make("li", {}),
        bar = make(
          "button",
          { type: "button", className: "class", onclick: (event) => pickClass(rank, event.shiftKey) },
          { rank },
        );
      bar.style.setProperty("--share", probability);
      bar.append(make("span", { textContent: label }), make("span", { textContent: percent(probability) }));
      const less = make(
        "button",
        {
          type: "button",
          className: "less",
          textContent: "−",
          title: `The difference to ${label}`,
          ariaLabel: `The difference to ${label}`,
          onclick: () => pickClass(rank, true),
        },
        { rank },
      );
      row.append(bar, less);
      return row;
    }),
  );
  part("lens-list").replaceChildren(
    ...(lens[0] ?? []).map(() => {
      const row = make("li", {});
      row.append(make("span", {}), make("span", {}));
      return row;
    }),
  );
  part("decided").replaceChildren(
    ...decided.map((probability, layer) => {
      const bar = make("div", {
        title: `${percent(probability)} ${predictions[0].label} after layer ${layer}`,
        onclick: () => change({ layer }),
      });
      bar.style.setProperty("--share", probability);
      return bar;
    }),
  );
}

function choice(name, value, text, onchange) {
  const label = make("label", {}),
    input = make("input", { type: "radio", name, value, onchange });
  label.append(input, make("span", { textContent: text }));
  return label;
}

function showControls() {
  for (const [name, value] of [
    ["vit-map", view.map],
    ["vit-head", view.head],
    ["vit-direction", view.direction],
    ["vit-scale", view.scale],
  ]) {
    for (const input of element.querySelectorAll(`input[name="${name}"]`))
      input.checked = input.value === String(value);
  }
  part("layer").value = view.layer;
  for (const input of element.querySelectorAll("[data-view]")) {
    if (input.type === "checkbox") input.checked = view[input.dataset.view];
    else input.value = view[input.dataset.view];
  }
  part("heads-choice").disabled = view.map === "relevance";
  part("direction").disabled = view.map !== "attention";
  part("class-token").setAttribute("aria-pressed", view.map === "attention" && !isPinned());
  part("pinned").hidden = !isPinned();
  if (isPinned()) part("pinned").textContent = `${capital(patchName(view.token - explained.prefix.length))} ×`;
  for (const button of element.querySelectorAll(".classes button")) {
    const rank = Number(button.dataset.rank),
      shown = view.map === "relevance";
    const pressed = shown && rank === (button.className === "less" ? view.against : view.chosen);
    button.setAttribute("aria-pressed", pressed);
    if (button.className === "less") button.disabled = rank === view.chosen;
  }
  const play = part("play");
  play.textContent = playing ? "❚❚" : "▶";
  play.setAttribute("aria-pressed", !!playing);
}

function pickClass(rank, second) {
  if (!second || rank === view.chosen)
    return change({ map: "relevance", chosen: rank, against: null, token: firstToken() });
  const same = view.map === "relevance" && view.against === rank;
  change({ map: "relevance", against: same ? null : rank, token: firstToken() });
}

// The class token, or the middle patch of a model that has none.
function firstToken() {
  const [rows, columns] = explained.grid;
  return explained.prefix.includes("class")
    ? 0
    : explained.prefix.length + Math.floor(rows / 2) * columns + Math.floor(columns / 2);
}

function pin(patch) {
  const token = explained.prefix.length + patch;
  change(view.map === "attention" && token === view.token ? { token: firstToken() } : { map: "attention", token });
  ask();
}

// Where the attention is too large to come whole, the look of a pinned patch is asked from the server.
function ask() {
  if (explained.whole || !isPinned() || explained.asked.has(view.token) || latest !== explained.url) return;
  trigger("ask_patch", { explanation: explained.url, token: view.token, patch: view.token - explained.prefix.length });
}

function goBack() {
  hovered = null;
  if (document.activeElement === part("pinned")) part("class-token").focus(); // the other is about to go
  change({ token: firstToken(), direction: "looks_at", against: null });
}

function play(on) {
  clearInterval(playing);
  playing = on ? setInterval(() => change({ layer: (view.layer + 1) % explained.layers }), 600) : null;
  change();
}

const step = (value, by, count) => Math.min(count - 1, Math.max(0, value + by));

function moveHead(by) {
  if (view.map === "relevance") {
    change({ chosen: step(view.chosen, by, explained.predictions.length), against: null });
  } else change({ head: explained.columns[step(explained.columns.indexOf(view.head), by, explained.columns.length)] });
}

function movePatch(across, down) {
  const [rows, columns] = explained.grid;
  const from =
    hovered ??
    (isPinned() ? view.token - explained.prefix.length : Math.floor(rows / 2) * columns + Math.floor(columns / 2));
  hovered = step(Math.floor(from / columns), down, rows) * columns + step(from % columns, across, columns);
  change();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onKey(event) {
  if (!explained || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return goBack();
  if (event.target === canvas && (event.key === "Enter" || event.key === " ") && hovered !== null) {
    event.preventDefault();
    return pin(hovered);
  }
  if (!(event.key in ARROWS) || event.target.matches("input")) return; // which have their own use for arrows
  event.preventDefault();
  const [across, down] = ARROWS[event.key];
  if (event.shiftKey) return movePatch(across, down);
  if (across) change({ layer: step(view.layer, across, explained.layers) });
  if (down) moveHead(down);
  if (event.target.closest(".cells")) {
    requestAnimationFrame(() =>
      requestAnimationFrame(() => element.querySelector('.cells button[aria-pressed="true"]')?.focus()),
    );
  }
}

// The patch under the pointer; null beside what the model saw.
function patchAt(event) {
  const bounds = canvas.getBoundingClientRect(),
    [rows, columns] = explained.grid;
  const [left, top, right, bottom] = boxOn([bounds.width, bounds.height]);
  const across = Math.floor(((event.clientX - bounds.left - left) / (right - left)) * columns);
  const down = Math.floor(((event.clientY - bounds.top - top) / (bottom - top)) * rows);
  return across >= 0 && across < columns && down >= 0 && down < rows ? down * columns + across : null;
}

function hover(patch) {
  if (patch === hovered) return;
  hovered = patch;
  change();
}

function listen() {
  element.addEventListener("keydown", onKey);
  canvas.addEventListener(
    "pointermove",
    (event) => explained && event.pointerType !== "touch" && hover(patchAt(event)),
  );
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hover(null));
  canvas.addEventListener("click", (event) => {
    const patch = explained ? patchAt(event) : null;
    const first = event.pointerType === "touch" && patch !== hovered; // a finger cannot point: it taps, and taps again
    hover(patch);
    if (patch !== null && !first) pin(patch);
  });
  for (const name of ["map", "direction", "scale"]) {
    for (const input of element.querySelectorAll(`input[name="vit-${name}"]`)) {
      input.addEventListener("change", () => {
        change({ [name]: input.value });
        if (name === "map") change({ against: null, token: input.value === "attention" ? view.token : firstToken() });
      });
    }
  }
  part("layer").addEventListener("input", () => {
    if (playing) play(false);
    change({ layer: Number(part("layer").value) });
  });
  for (const input of element.querySelectorAll("[data-view]")) {
    input.addEventListener("input", () =>
      change({ [input.dataset.view]: input.type === "checkbox" ? input.checked : Number(input.value) }),
    );
  }
  part("play").addEventListener("click", () => play(!playing));
  part("class-token").addEventListener("click", () => change({ map: "attention", token: firstToken(), against: null }));
  part("pinned").addEventListener("click", goBack);
  part("save-view").addEventListener("click", saveView);
  part("save-sheet").addEventListener("click", saveSheet);
  part("save-arrays").addEventListener("click", saveArrays);
  part("copy-link").addEventListener("click", copyLink);
  new ResizeObserver(() => change()).observe(part("body"));
}
