// Drawing maps: values to colours, and the colours over the photo, as drawing.py does it.

const FINE = 8; // steps from one patch to the next where a map is smooth

// A small canvas with one pixel for each patch, or FINE × FINE of them.
function heat(values, [rows, columns], [low, high], { colours, signed, smooth }) {
  const fine = smooth ? FINE : 1;
  const width = columns * fine,
    height = rows * fine;
  const pixels = new ImageData(width, height),
    data = pixels.data;
  const table = signed ? 768 : 0;
  const times = high > low ? 256 / (high - low) : 0,
    flat = signed ? 128 : 0;
  const across = places(columns, fine),
    down = places(rows, fine);
  for (let y = 0, to = 0; y < height; y++) {
    const [above, below, share] = down[y];
    for (let x = 0; x < width; x++, to += 4) {
      const [left, right, part] = across[x];
      let value = values[above * columns + left];
      if (smooth) {
        const top = value * (1 - part) + values[above * columns + right] * part;
        const bottom = values[below * columns + left] * (1 - part) + values[below * columns + right] * part;
        value = top * (1 - share) + bottom * share;
      }
      const step = times ? Math.min(255, Math.max(0, Math.floor((value - low) * times))) : flat;
      data[to] = colours[table + step * 3];
      data[to + 1] = colours[table + step * 3 + 1];
      data[to + 2] = colours[table + step * 3 + 2];
      data[to + 3] = 255;
    }
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

// For each fine step the two cells that it lies between, and how far it is from the first.
function places(cells, fine) {
  return Array.from({ length: cells * fine }, (_, step) => {
    const middle = Math.min(cells - 1, Math.max(0, (step + 0.5) / fine - 0.5));
    const first = Math.floor(middle);
    return [first, Math.min(cells - 1, first + 1), middle - first];
  });
}

// The photo at a canvas's size, and the same in grey.
function pictures(picture, width, height) {
  const [colour, grey] = [new OffscreenCanvas(width, height), new OffscreenCanvas(width, height)];
  const context = colour.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height),
    data = pixels.data;
  for (let at = 0; at < data.length; at += 4) {
    data[at] = data[at + 1] = data[at + 2] = 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
  }
  grey.getContext("2d").putImageData(pixels, 0, 0);
  return { colour, grey };
}

// The photo as it lies under a map: the part that was seen paler the more opaque the map, the rest grey and dim.
function ground({ colour, grey }, [left, top, right, bottom], opacity) {
  const canvas = new OffscreenCanvas(colour.width, colour.height),
    context = canvas.getContext("2d");
  context.fillStyle = "rgb(33, 33, 33)";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.globalAlpha = 0.4;
  context.drawImage(grey, 0, 0);
  context.beginPath();
  context.rect(left, top, right - left, bottom - top);
  context.clip();
  context.globalAlpha = 1;
  context.drawImage(colour, 0, 0);
  context.globalAlpha = opacity;
  context.drawImage(grey, 0, 0);
  return canvas;
}

function drawMap(context, under, colours, [left, top, right, bottom], { opacity, smooth }) {
  context.drawImage(under, 0, 0);
  context.save();
  context.globalAlpha = opacity;
  context.imageSmoothingEnabled = smooth;
  context.imageSmoothingQuality = "low";
  context.drawImage(colours, left, top, right - left, bottom - top);
  context.restore();
}

function drawGrid(context, [left, top, right, bottom], [rows, columns], ratio) {
  context.lineWidth = ratio;
  for (const [colour, shift] of [
    ["rgba(0, 0, 0, 0.45)", 0.5],
    ["rgba(255, 255, 255, 0.35)", -0.5],
  ]) {
    context.strokeStyle = colour;
    context.beginPath();
    for (let column = 0; column <= columns; column++) {
      const x = Math.round(left + (column / columns) * (right - left)) + shift * ratio;
      context.moveTo(x, top);
      context.lineTo(x, bottom);
    }
    for (let row = 0; row <= rows; row++) {
      const y = Math.round(top + (row / rows) * (bottom - top)) + shift * ratio;
      context.moveTo(left, y);
      context.lineTo(right, y);
    }
    context.stroke();
  }
}

function patchBox(patch, [left, top, right, bottom], [rows, columns]) {
  const width = (right - left) / columns,
    height = (bottom - top) / rows;
  return [left + (patch % columns) * width, top + Math.floor(patch / columns) * height, width, height];
}

function outline(context, [x, y, width, height], colour, ratio) {
  context.lineWidth = 4 * ratio;
  context.strokeStyle = "rgba(0, 0, 0, 0.85)";
  context.strokeRect(x, y, width, height);
  context.lineWidth = 2 * ratio;
  context.strokeStyle = colour;
  context.strokeRect(x, y, width, height);
}

function cross(context, [x, y, width, height], ratio) {
  const inset = Math.min(width, height) / 4;
  for (const [colour, line] of [
    ["black", 4],
    ["white", 2],
  ]) {
    context.strokeStyle = colour;
    context.lineWidth = line * ratio;
    context.beginPath();
    context.moveTo(x + inset, y + inset);
    context.lineTo(x + width - inset, y + height - inset);
    context.moveTo(x + width - inset, y + inset);
    context.lineTo(x + inset, y + height - inset);
    context.stroke();
  }
}
