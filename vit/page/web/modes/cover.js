// The stage of a mode that shows a photo of its own: a canvas over the page's.

/**
 * The canvas gets the picture's shape, in the middle of the stage and as large as there is room.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} root
 * @param {number[]} size  width and height of the picture
 * @returns {number}  pixels of the canvas for one of the page
 */
export function cover(canvas, root, [wide, tall]) {
  const ground = /** @type {HTMLElement} */ (root.querySelector('[data-part="ground"]'));
  const times = Math.min(ground.clientWidth / wide, ground.clientHeight / tall);
  const [width, height] = [wide * times, tall * times];
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  Object.assign(canvas.style, {
    left: `${(ground.clientWidth - width) / 2}px`,
    top: `${(ground.clientHeight - height) / 2}px`,
    width: `${width}px`,
    height: `${height}px`,
  });
  return ratio;
}
