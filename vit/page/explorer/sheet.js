// The sheet of layers × heads, or classes: one canvas, with a button over each map.

function drawSheet(maps) {
  showCells(maps);
  const ratio = window.devicePixelRatio || 1,
    cells = part("cells"),
    first = cells.querySelector("button");
  const [width, height] = [Math.round(cells.clientWidth * ratio), Math.round(cells.clientHeight * ratio)];
  if (!first || !width || !height) return;
  const key = [cached.stack.key, width, height, view.scale, view.smooth].join();
  remember("sheet", key, () => {
    [sheetCanvas.width, sheetCanvas.height] = [width, height];
    const context = sheetCanvas.getContext("2d");
    context.imageSmoothingEnabled = view.smooth;
    const from = cells.getBoundingClientRect();
    for (const button of cells.querySelectorAll("button")) {
      const { row, layer } = button.dataset,
        values = maps.layers[layer][row];
      const at = button.getBoundingClientRect();
      const colours = heat(values, explained.grid, scaleOf(maps, values), options(maps));
      context.drawImage(
        colours,
        (at.left - from.left + 2) * ratio,
        (at.top - from.top + 2) * ratio,
        (at.width - 4) * ratio,
        (at.height - 4) * ratio,
      );
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
        make(
          "button",
          {
            type: "button",
            title: `Layer ${layer}, ${head}`,
            ariaLabel: `Layer ${layer}, ${head}`,
            onclick: () => pick(layer, row),
          },
          { row, layer },
        ),
      );
      return [title, ...buttons];
    });
    const numbers = Array.from({ length: explained.layers }, (_, layer) =>
      make("span", { className: "layer-name", textContent: layer }),
    );
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
