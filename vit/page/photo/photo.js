// The photo box: whatever way a photo comes, it is sent to the server, and becomes the component's value.

const part = (name) => element.querySelector(`[data-part="${name}"]`);
const say = (text) => {
  part("said").textContent = text;
};

let latest = 0; // the last photo wins, however long it takes to send

async function send(file) {
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
    if (mine === latest) say(`The photo could not be sent: ${error.message}`);
  }
}

part("file").addEventListener("change", () => {
  if (part("file").files.length) send(part("file").files[0]);
  part("file").value = ""; // so that the same file can be chosen again
});

// Anywhere on the page.
window.addEventListener("dragover", (event) => {
  event.preventDefault();
  part("drop").classList.add("over");
});
window.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) part("drop").classList.remove("over");
});
window.addEventListener("drop", (event) => {
  event.preventDefault();
  part("drop").classList.remove("over");
  send(event.dataTransfer.files[0]);
});
window.addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length && event.target.matches?.("input, textarea")) return; // text for that field
  send(event.clipboardData.files[0]);
});

part("paste").addEventListener("click", async () => {
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

let camera = null;
function closeCamera() {
  camera?.getTracks().forEach((track) => track.stop());
  camera = null;
  part("shutter").close();
}

part("camera").addEventListener("click", async () => {
  try {
    camera = await navigator.mediaDevices.getUserMedia({
      video: { facingMode: "environment", width: { ideal: 1920 } },
    });
    part("finder").srcObject = camera;
    part("shutter").showModal();
  } catch {
    say("The camera cannot be used: allow it in the browser, or choose a photo.");
  }
});
part("shutter").addEventListener("cancel", closeCamera);
part("cancel").addEventListener("click", closeCamera);
part("take").addEventListener("click", () => {
  const { videoWidth: width, videoHeight: height } = part("finder"),
    shot = document.createElement("canvas");
  [shot.width, shot.height] = [width, height];
  shot.getContext("2d").drawImage(part("finder"), 0, 0);
  closeCamera();
  shot.toBlob((blob) => send(new File([blob], "photo.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
});

element.querySelector(".examples").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  latest++;
  say("");
  trigger("pick", { name: button.dataset.name });
});
