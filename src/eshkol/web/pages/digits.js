/* A sheet to draw on; after each stroke's piece the model is asked, and bars say what it answers. */
import { load, names } from "./eshkol.js";

const settings = JSON.parse(document.getElementById("settings").textContent);
const [sheet, seen, bars] = ["sheet", "seen", "bars"].map((id) => document.getElementById(id));
const file = (name) => new URL(name, import.meta.url);
const side = settings.side;
const PEN = sheet.width / 14;
const style = getComputedStyle(document.documentElement);

const paper = sheet.getContext("2d", { willReadFrequently: true });
const preview = seen.getContext("2d");
seen.width = seen.height = side;

const rows = settings.labels.map((label) => {
  const row = document.createElement("li");
  row.innerHTML = '<span></span><div class="track" role="meter" aria-valuemin="0" aria-valuemax="100"><div class="fill"></div></div><span class="share"></span>';
  row.firstChild.textContent = label;
  row.children[1].setAttribute("aria-label", label);
  bars.append(row);
  return row;
});

/** The drawing as the pictures that the model was trained on: scaled into a box, in the middle, from 0 to 1. */
export function picture() {
  const { width, height } = sheet;
  const raw = paper.getImageData(0, 0, width, height).data;
  let [left, right, top, bottom, mass, middleX, middleY] = [width, -1, height, -1, 0, 0, 0];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const ink = raw[4 * (y * width + x) + 3];
      if (ink < 16) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
      mass += ink;
      middleX += ink * (x + 0.5);
      middleY += ink * (y + 0.5);
    }
  const found = new Float32Array(side * side);
  if (right < 0) return null;
  const box = settings.box;
  const scale = box / Math.max(right - left + 1, bottom - top + 1);
  // Where the drawing's middle lies on the sheet: of its ink, or of the rectangle around it.
  const byMass = settings.centre === "mass";
  const centreX = byMass ? middleX / mass : (left + right + 1) / 2;
  const centreY = byMass ? middleY / mass : (top + bottom + 1) / 2;
  const cell = scale * scale;
  for (let y = top; y <= bottom; y++)
    for (let x = left; x <= right; x++) {
      const ink = raw[4 * (y * width + x) + 3];
      if (ink < 16) continue;
      // A dot of the sheet is smaller than an element; what of it lies in each of the next ones is added there.
      const atX = (x + 0.5 - centreX) * scale + side / 2 - 0.5;
      const atY = (y + 0.5 - centreY) * scale + side / 2 - 0.5;
      const [column, row] = [Math.floor(atX), Math.floor(atY)];
      for (const [dx, shareX] of [[0, 1 - (atX - column)], [1, atX - column]])
        for (const [dy, shareY] of [[0, 1 - (atY - row)], [1, atY - row]]) {
          const [u, v] = [column + dx, row + dy];
          if (u >= 0 && u < side && v >= 0 && v < side) found[v * side + u] += (ink / 255) * cell * shareX * shareY;
        }
    }
  return found.map((value) => Math.min(1, value * settings.ink));
}

let model = null;
let waiting = false; // for an answer
let again = false; // whether more was drawn meanwhile

function show(image, shares, time) {
  const best = shares ? shares.indexOf(Math.max(...shares)) : -1;
  rows.forEach((row, k) => {
    const percent = shares ? 100 * shares[k] : 0;
    row.classList.toggle("best", k === best);
    row.querySelector(".fill").style.transform = `scaleX(${percent / 100})`;
    row.querySelector(".track").setAttribute("aria-valuenow", percent.toFixed(1));
    row.querySelector(".share").textContent = shares ? `${percent.toFixed(1)} %` : "";
  });
  document.getElementById("best").textContent = best < 0 ? "–" : settings.labels[best];
  document.getElementById("sure").textContent =
    best < 0 ? "nothing is drawn yet" : shares[best] > 0.9 ? "quite sure" : shares[best] > 0.6 ? "probably" : "perhaps";
  document.getElementById("figures").textContent = time === null ? "" : `answered in ${time.toFixed(2)} ms by ${names[model.machine]}`;
  const dots = preview.createImageData(side, side);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  for (let k = 0; k < side * side; k++) dots.data.set([dark ? 230 : 35, dark ? 228 : 38, dark ? 223 : 43, image ? 255 * image[k] : 0], 4 * k);
  preview.putImageData(dots, 0, 0);
}

async function answer() {
  again = false;
  const image = picture();
  try {
    const begin = performance.now();
    const found = image && (await model.run({ image }));
    show(image, found && [...found.out], found && performance.now() - begin);
  } catch (error) {
    document.getElementById("problem").textContent = error.message;
  }
  waiting = false;
  if (again) ask();
}

function ask() {
  if (model === null) return;
  if (waiting) again = true;
  else requestAnimationFrame(answer);
  waiting = true;
}

let last = null;
const place = (event) => {
  const frame = sheet.getBoundingClientRect();
  return [((event.clientX - frame.left) / frame.width) * sheet.width, ((event.clientY - frame.top) / frame.height) * sheet.height];
};
function stroke(to) {
  paper.lineCap = paper.lineJoin = "round";
  paper.lineWidth = PEN;
  paper.strokeStyle = style.getPropertyValue("--ink").trim();
  paper.beginPath();
  paper.moveTo(...(last ?? to));
  paper.lineTo(...to);
  paper.stroke();
  last = to;
  ask();
}
sheet.addEventListener("pointerdown", (event) => {
  sheet.setPointerCapture?.(event.pointerId);
  last = null;
  stroke(place(event));
});
sheet.addEventListener("pointermove", (event) => {
  if (last !== null) for (const piece of event.getCoalescedEvents?.() ?? [event]) stroke(place(piece));
});
for (const kind of ["pointerup", "pointercancel"]) sheet.addEventListener(kind, () => (last = null));
document.getElementById("clear").addEventListener("click", () => {
  paper.clearRect(0, 0, sheet.width, sheet.height);
  ask();
});

try {
  model = await load(file("model.wasm"), settings.gpu ? { gpu: file(settings.gpu) } : {});
  document.body.dataset.ready = "yes";
  show(null, null, null);
} catch (error) {
  document.getElementById("problem").textContent = error.message;
}
