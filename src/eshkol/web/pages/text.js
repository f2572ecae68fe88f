/* Text that the model writes: it reads a token at a time and keeps what it has read (`memory`). */
import { load, names } from "./eshkol.js";

const settings = JSON.parse(document.getElementById("settings").textContent);
const part = (id) => document.getElementById(id);
const file = (name) => new URL(name, import.meta.url);
const { context } = settings;
const PAUSE = 12; // ms of work before the page gets its turn

/** Characters or bytes as tokens, and back. */
const tokens = settings.characters
  ? {
      numbers: new Map(settings.characters.map((character, number) => [character, number])),
      encode(text) {
        return [...text].map((character) => {
          const number = this.numbers.get(character);
          if (number === undefined) throw new Error(`the model does not know the character ${JSON.stringify(character)}`);
          return number;
        });
      },
      decoder: () => (token) => settings.characters[token],
    }
  : {
      encode: (text) => [...new TextEncoder().encode(text)],
      decoder() {
        const decoder = new TextDecoder();
        return (token) => decoder.decode(new Uint8Array([token]), { stream: true });
      },
    };

/** A token drawn by its logits; temperature 0 takes the likeliest. */
export function drawn(logits, temperature, random = Math.random) {
  let best = 0;
  logits.forEach((logit, k) => (best = logit > logits[best] ? k : best));
  if (temperature <= 0) return best;
  const weights = logits.map((logit) => Math.exp((logit - logits[best]) / temperature));
  let rest = random() * weights.reduce((sum, weight) => sum + weight, 0);
  for (let k = 0; k < weights.length; k++) if ((rest -= weights[k]) < 0) return k;
  return best;
}

/** What reads tokens one after another; beyond the context it goes on from the last half of it. */
export class Reader {
  constructor(model) {
    this.model = model;
    this.seen = [];
    this.memory = {};
    for (const operand of model.inputs)
      if (operand.name.startsWith("memory"))
        this.memory[operand.name] = new Float32Array(operand.shape.reduce((a, b) => a * b, 1));
  }

  /** The logits of the token that follows. */
  async read(token) {
    if (this.seen.length === context) {
      const last = this.seen.slice(Math.ceil(context / 2));
      this.seen = [];
      for (const earlier of last) await this.read(earlier);
    }
    const given = { token: [token], position: this.seen.length, ...this.memory };
    const { out_logits: logits, ...rest } = await this.model.run(given);
    for (const name of Object.keys(this.memory)) this.memory[name] = rest[`out_${name}`];
    this.seen.push(token);
    return logits;
  }
}

let model = null;
let stopped = false;

async function write() {
  const [prompt, count, temperature] = [part("prompt").value, Number(part("count").value), Number(part("temperature").value)];
  const text = part("written");
  part("problem").textContent = "";
  const given = tokens.encode(prompt === "" ? settings.prompt : prompt);
  if (given.length === 0) throw new Error("write a beginning, a character at least");
  const [reader, decode] = [new Reader(model), tokens.decoder()];
  text.replaceChildren(Object.assign(document.createElement("span"), { className: "given", textContent: prompt }), "");
  const tail = text.lastChild;
  [stopped, part("write").disabled, part("stop").disabled] = [false, true, false];
  text.classList.add("busy");
  try {
    let logits = null;
    let spent = 0;
    let begin = performance.now();
    let turn = begin;
    for (const token of given.slice(-context)) logits = await reader.read(token);
    for (let made = 0; made < count && !stopped; made++) {
      const token = drawn(Array.from(logits), temperature);
      tail.data += decode(token);
      logits = await reader.read(token);
      if (performance.now() - turn > PAUSE || made === count - 1) {
        spent += performance.now() - turn;
        const each = spent / (made + 1 + given.length);
        part("figures").textContent = `${made + 1} characters, ${each.toFixed(2)} ms each by ${names[model.machine]}`;
        await new Promise(requestAnimationFrame);
        turn = performance.now();
      }
    }
  } finally {
    text.classList.remove("busy");
    [part("write").disabled, part("stop").disabled] = [false, true];
  }
}

const tell = (error) => (part("problem").textContent = error.message);
part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  write().catch(tell);
});
part("stop").addEventListener("click", () => (stopped = true));
for (const id of ["temperature", "count"]) {
  const showValue = () => (part(`${id}-value`).textContent = part(id).value);
  part(id).addEventListener("input", showValue);
  showValue();
}
part("prompt").value = settings.prompt;
try {
  model = await load(file("model.wasm"), settings.gpu ? { gpu: file(settings.gpu) } : {});
  part("write").disabled = false;
  document.body.dataset.ready = "yes";
} catch (error) {
  tell(error);
}
