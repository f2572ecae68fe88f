/* Runs models that `ek.export_wasm` has written, in pages and in node. No other file is needed.
 *
 *   import { load } from "./eshkol.js";
 *   const model = await load("model.wasm");
 *   const { out } = model.run({ image: new Float32Array(784) });
 */

const SECTION = "eshkol";
const FORMAT = 1;

/* dtype → the array that holds it, and in words what its elements are */
const KINDS = {
  float32: [Float32Array, "numbers"],
  float64: [Float64Array, "numbers"],
  int8: [Int8Array, "integers"],
  int16: [Int16Array, "integers"],
  int32: [Int32Array, "integers"],
  int64: [BigInt64Array, "integers"],
  uint8: [Uint8Array, "integers"],
  uint16: [Uint16Array, "integers"],
  uint32: [Uint32Array, "integers"],
  uint64: [BigUint64Array, "integers"],
  bool: [Uint8Array, "zeros and ones"],
  float16: [Uint16Array, "bits of float16"],
  bfloat16: [Uint16Array, "bits of bfloat16"],
};

/** What is wrong with a module, with what a model is given, or with the data that it finds there. */
export class ModelError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "ModelError";
  }
}

const countOf = (shape) => shape.reduce((product, extent) => product * extent, 1);
const shown = (operand) => `${operand.dtype}[${operand.shape.join(", ")}]`;

function kindOf(value) {
  if (value === null || value === undefined) return String(value);
  return typeof value === "object" ? value.constructor?.name ?? "object" : typeof value;
}

/** A list of numbers as the array of a dtype; numbers that do not fit are refused instead of changed. */
function converted(operand, list) {
  const [Kind, words] = KINDS[operand.dtype];
  const made = new Kind(list.length);
  const whole = words !== "numbers";
  list.forEach((value, index) => {
    let number = typeof value === "boolean" ? Number(value) : value;
    const big = Kind === BigInt64Array || Kind === BigUint64Array;
    const fine = typeof number === "bigint" || (typeof number === "number" && (!whole || Number.isSafeInteger(number)));
    if (fine) {
      if (big) number = BigInt(number);
      else if (typeof number === "bigint") number = Number(number);
      made[index] = number;
    }
    if (!fine || (whole && made[index] !== number))
      throw new ModelError(`input "${operand.name}" is ${shown(operand)}: element ${index} is ${String(value)}`);
  });
  return made;
}

/** A model that is ready to run. One run is over when the call returns. */
export class Model {
  #inputs;
  #memory;
  #run;

  constructor(description, instance) {
    this.description = description;
    this.inputs = description.inputs;
    this.outputs = description.outputs;
    this.#inputs = new Map(description.inputs.map((operand) => [operand.name, operand]));
    this.#memory = instance.exports.memory;
    this.#run = instance.exports.run;
  }

  /** Outputs by their names, as arrays of their own; inputs are given by their names. */
  run(inputs = {}) {
    if (typeof inputs !== "object" || inputs === null || ArrayBuffer.isView(inputs) || Array.isArray(inputs)) {
      const names = this.inputs.map((operand) => operand.name).join(", ");
      throw new ModelError(`run takes inputs by their names, {${names}}, not ${kindOf(inputs)}`);
    }
    for (const name of Object.keys(inputs))
      if (!this.#inputs.has(name)) {
        const names = [...this.#inputs.keys()].join(", ") || "none";
        throw new ModelError(`there is no input "${name}"; inputs: ${names}`);
      }
    for (const operand of this.inputs) this.#put(operand, inputs[operand.name]);
    let code;
    try {
      code = this.#run();
    } catch (error) {
      throw new ModelError(`the model stopped: ${error.message}`, { cause: error });
    }
    if (code !== 0) {
      const { faults, messages } = this.description;
      throw new ModelError(messages[faults[code - 1]] ?? `the model found something wrong with its data (${code})`);
    }
    return Object.fromEntries(this.outputs.map((operand) => [operand.name, this.#array(operand).slice()]));
  }

  #array(operand) {
    return new KINDS[operand.dtype][0](this.#memory.buffer, operand.at, countOf(operand.shape));
  }

  #put(operand, given) {
    const [Kind, words] = KINDS[operand.dtype];
    if (given === undefined) throw new ModelError(`input "${operand.name}" (${shown(operand)}) is missing`);
    const one = typeof given === "number" || typeof given === "bigint" || typeof given === "boolean";
    if (!one && !Array.isArray(given) && !(given instanceof Kind))
      throw new ModelError(
        `input "${operand.name}" is ${shown(operand)}: give a ${Kind.name} or an array of ${words}, not ${kindOf(given)}`,
      );
    const list = one ? [given] : given;
    const wanted = countOf(operand.shape);
    if (list.length !== wanted)
      throw new ModelError(
        `input "${operand.name}" is ${shown(operand)}, ${wanted} elements in all; it was given ${list.length}`,
      );
    const array = list instanceof Kind ? list : converted(operand, list);
    if (operand.dtype === "bool" && array.some((bit) => bit > 1))
      throw new ModelError(`input "${operand.name}" is bool: its elements are 0 or 1`);
    this.#array(operand).set(array);
  }
}

function descriptionOf(module) {
  const found = WebAssembly.Module.customSections(module, SECTION);
  if (found.length !== 1) throw new ModelError("this module was not exported by Eshkol: it does not say what it takes");
  const description = JSON.parse(new TextDecoder().decode(found[0]));
  if (description.format !== FORMAT)
    throw new ModelError(`the module has format ${description.format}, and this eshkol.js reads format ${FORMAT}`);
  return description;
}

async function read(source) {
  if (!(source instanceof Response) && globalThis.process?.versions?.node && !/^(https?|data|blob):/.test(source)) {
    const { readFile } = await import("node:fs/promises");
    return readFile(source);
  }
  const response = source instanceof Response ? source : await fetch(source);
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.arrayBuffer();
}

/** The module of a URL, a path (in node), a Response, bytes, or a module that is compiled already. */
async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  let bytes = source;
  if (typeof source === "string" || source instanceof URL || source instanceof Response)
    try {
      bytes = await read(source);
    } catch (error) {
      throw new ModelError(`${source.url ?? source} cannot be loaded: ${error.message}`, { cause: error });
    }
  if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes))
    throw new ModelError(`load takes a URL, a Response, bytes or a module, not ${kindOf(source)}`);
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw new ModelError(`this is no module that can be run here: ${error.message}`, { cause: error });
  }
}

/** A model, ready to run. */
export async function load(source) {
  const module = await compiled(source);
  const description = descriptionOf(module);
  let instance;
  try {
    instance = await WebAssembly.instantiate(module, {});
  } catch (error) {
    throw new ModelError(`the model does not start: ${error.message}`, { cause: error });
  }
  return new Model(description, instance);
}
