/* Any model: a field for each input, and what comes out. */
import { load, names } from "./eshkol.js";

const settings = JSON.parse(document.getElementById("settings").textContent);
const part = (id) => document.getElementById(id);
const file = (name) => new URL(name, import.meta.url);
const countOf = (operand) => operand.shape.reduce((a, b) => a * b, 1);
const FILLED = 4096; // elements up to which a field is filled in
const SHOWN = 200;

let model = null;
const fields = new Map();

function numbers(text, operand) {
  return text.split(/[\s,;[\]]+/).filter(Boolean).map((word) => {
    if (/int64/.test(operand.dtype) && /^[+-]?\d+$/.test(word)) return BigInt(word);
    const number = Number(word);
    if (Number.isNaN(number) && !/^nan$/i.test(word)) throw new Error(`${operand.name}: "${word}" is no number`);
    return number;
  });
}

const written = (value) => (typeof value === "bigint" || Number.isInteger(value) ? String(value) : value.toPrecision(6).replace(/\.?0+(e|$)/, "$1"));

function named(operand) {
  const kind = Object.assign(document.createElement("span"), { className: "kind", textContent: ` ${operand.dtype}[${operand.shape.join(", ")}]` });
  return [operand.name, kind];
}

function fill(make) {
  for (const [operand, field] of fields) field.value = Array.from({ length: Math.min(countOf(operand), FILLED) }, () => make(operand)).join(" ");
}

async function run() {
  part("problem").textContent = part("figures").textContent = "";
  part("outputs").replaceChildren();
  const inputs = {};
  for (const [operand, field] of fields) inputs[operand.name] = numbers(field.value, operand);
  const begin = performance.now();
  const outputs = await model.run(inputs);
  part("figures").textContent = `computed in ${(performance.now() - begin).toFixed(2)} ms by ${names[model.machine]}`;
  part("outputs").replaceChildren(
    ...model.outputs.map((operand) => {
      const row = document.createElement("tr");
      const head = Object.assign(document.createElement("th"), { scope: "row" });
      head.append(...named(operand));
      const values = [...outputs[operand.name].slice(0, SHOWN)].map(written).join("  ");
      const more = outputs[operand.name].length > SHOWN ? ` … (${outputs[operand.name].length} in all)` : "";
      row.append(head, Object.assign(document.createElement("td"), { textContent: values + more }));
      return row;
    }),
  );
}

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run().catch((error) => (part("problem").textContent = error.message));
});
part("random").addEventListener("click", () =>
  fill((operand) => (operand.dtype.startsWith("float") ? (2 * Math.random() - 1).toFixed(3) : Math.round(Math.random()))),
);
try {
  model = await load(file("model.wasm"), settings.gpu ? { gpu: file(settings.gpu) } : {});
  for (const operand of model.inputs) {
    const box = Object.assign(document.createElement("div"), { className: "field" });
    const label = Object.assign(document.createElement("label"), { htmlFor: `input-${operand.name}` });
    label.append(...named(operand));
    const field = Object.assign(document.createElement("textarea"), { id: `input-${operand.name}`, rows: 3, spellcheck: false });
    box.append(label, field);
    part("inputs").append(box);
    fields.set(operand, field);
  }
  fill(() => 0);
  part("run").disabled = part("random").disabled = false;
  document.body.dataset.ready = "yes";
} catch (error) {
  part("problem").textContent = error.message;
}
