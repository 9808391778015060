// The photo box: whatever way a photo comes, it is sent to the server, and becomes the component's value.

/**
 * @typedef {object} Component  What Gradio hands to a script.
 * @property {HTMLElement} element
 * @property {{ value: any }} props
 * @property {(event: string, data: object) => void} trigger
 * @property {(file: File) => Promise<{ path: string, url: string }>} upload
 */

export function start(/** @type {Component} */ { element, props, trigger, upload }) {
  const part = (/** @type {string} */ name) => /** @type {any} */ (element.querySelector(`[data-part="${name}"]`));
  const say = (/** @type {string} */ text) => {
    part("said").textContent = text;
  };
  let latest = 0; // the last photo wins, however long it takes to send

  async function send(/** @type {File | undefined} */ file) {
    const mine = ++latest;
    if (!file) return say("That was no file: save the photo first, then drop or choose it.");
    say("Sending …");
    try {
      const { path, url } = await upload(file);
      if (mine !== latest) return;
      // The number makes it a change, even if the same photo is sent again.
      props.value = {
        path,
        url: `${url}#${mine}`,
        orig_name: file.name,
        size: file.size,
        mime_type: file.type,
        meta: { _type: "gradio.FileData" },
      };
      say("");
    } catch (error) {
      if (mine === latest) say(`The photo could not be sent: ${/** @type {Error} */ (error).message}`);
    }
  }

  part("file").addEventListener("change", () => {
    if (part("file").files.length) send(part("file").files[0]);
    part("file").value = ""; // so that the same file can be chosen again
  });
  element.querySelector(".examples")?.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button) return;
    latest++;
    say("");
    trigger("pick", { name: button.dataset.name });
  });
  acceptDrops(part("drop"), send);
  acceptPastes(part("paste"), send, say);
  acceptShots(part, send, say);
}

/**
 * Anywhere on the page.
 * @param {HTMLElement} box
 * @param {(file: File | undefined) => void} send
 */
function acceptDrops(box, send) {
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) box.classList.remove("over");
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    send(event.dataTransfer?.files[0]);
  });
}

/**
 * @param {HTMLElement} button
 * @param {(file: File | undefined) => void} send
 * @param {(text: string) => void} say
 */
function acceptPastes(button, send, say) {
  window.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files;
    if (!files?.length && /** @type {Element} */ (event.target).matches?.("input, textarea")) return; // text for that field
    send(files?.[0]);
  });
  button.addEventListener("click", async () => {
    try {
      for (const item of await navigator.clipboard.read()) {
        const type = item.types.find((type) => type.startsWith("image/"));
        if (type) return send(new File([await item.getType(type)], `pasted.${type.slice(6)}`, { type }));
      }
      say("There is no picture in the clipboard: copy one first.");
    } catch {
      say("The browser does not let the page read the clipboard: press Ctrl + V instead.");
    }
  });
}

/**
 * Photos from the camera.
 * @param {(name: string) => any} part
 * @param {(file: File | undefined) => void} send
 * @param {(text: string) => void} say
 */
function acceptShots(part, send, say) {
  const [shutter, finder] = [part("shutter"), part("finder")];
  /** @type {MediaStream | null} */
  let camera = null;
  const close = () => {
    for (const track of camera?.getTracks() ?? []) track.stop();
    camera = null;
    shutter.close();
  };
  part("camera").addEventListener("click", async () => {
    try {
      camera = await navigator.mediaDevices.getUserMedia({
        video: { facingMode: "environment", width: { ideal: 1920 } },
      });
      finder.srcObject = camera;
      shutter.showModal();
    } catch {
      say("The camera cannot be used: allow it in the browser, or choose a photo.");
    }
  });
  shutter.addEventListener("cancel", close);
  part("cancel").addEventListener("click", close);
  part("take").addEventListener("click", () => {
    const shot = document.createElement("canvas");
    [shot.width, shot.height] = [finder.videoWidth, finder.videoHeight];
    shot.getContext("2d")?.drawImage(finder, 0, 0);
    close();
    shot.toBlob((blob) => blob && send(new File([blob], "photo.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
}
