/* Runs models that `ek.export_wasm` has written, in pages and in node. No other file is needed, but `gpu.js` for those
 * that `ek.export_webgpu` has written beside.
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

/** What machines are called for people. */
export const names = { wasm: "WebAssembly", webgpu: "the GPU" };

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

/** The array of an operand that a run was given for it. */
function arrayFor(operand, given) {
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
  return array;
}

/** The arrays of all operands, in their order, of what a run was given by their names. */
function arraysFor(operands, inputs) {
  const names = operands.map((operand) => operand.name).join(", ");
  if (typeof inputs !== "object" || inputs === null || ArrayBuffer.isView(inputs) || Array.isArray(inputs))
    throw new ModelError(`run takes inputs by their names, {${names}}, not ${kindOf(inputs)}`);
  for (const name of Object.keys(inputs))
    if (!operands.some((operand) => operand.name === name))
      throw new ModelError(`there is no input "${name}"; inputs: ${names || "none"}`);
  return operands.map((operand) => arrayFor(operand, inputs[operand.name]));
}

/** A model that is ready to run. One run is over when the call returns. */
export class Model {
  machine = "wasm";
  #memory;
  #run;

  constructor(description, instance) {
    this.description = description;
    this.inputs = description.inputs;
    this.outputs = description.outputs;
    this.#memory = instance.exports.memory;
    this.#run = instance.exports.run;
  }

  /** Outputs by their names, as arrays of their own; inputs are given by their names. */
  run(inputs = {}) {
    const arrays = arraysFor(this.inputs, inputs);
    this.inputs.forEach((operand, k) => this.#array(operand).set(arrays[k]));
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
}

/** The same on the browser's GPU: a run gives a promise of the outputs. */
export class GpuModel {
  machine = "webgpu";
  #kernels;

  constructor(kernels) {
    this.description = kernels.description;
    this.inputs = kernels.description.inputs;
    this.outputs = kernels.description.outputs;
    this.#kernels = kernels;
  }

  async run(inputs = {}) {
    const arrays = arraysFor(this.inputs, inputs).map((array) => array.slice());
    let found;
    try {
      found = await this.#kernels.run(arrays);
    } catch (error) {
      throw new ModelError(error.message, { cause: error });
    }
    const array = (operand, raw) => new KINDS[operand.dtype][0](raw, 0, countOf(operand.shape));
    return Object.fromEntries(this.outputs.map((operand, k) => [operand.name, array(operand, found[k])]));
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

/** The bytes of a URL, a path (in node), a Response, or bytes themselves. */
async function bytesOf(source) {
  let bytes = source;
  if (typeof source === "string" || source instanceof URL || source instanceof Response)
    try {
      bytes = await read(source);
    } catch (error) {
      throw new ModelError(`${source.url ?? source} cannot be loaded: ${error.message}`, { cause: error });
    }
  if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes))
    throw new ModelError(`load takes a URL, a Response, bytes or a module, not ${kindOf(source)}`);
  return bytes;
}

/** The module of what `bytesOf` takes, or a module that is compiled already. */
async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  const bytes = await bytesOf(source);
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw new ModelError(`this is no module that can be run here: ${error.message}`, { cause: error });
  }
}

async function onGpu(source) {
  try {
    const { Kernels, adapterOfPage } = await import("./gpu.js");
    const adapter = await adapterOfPage(); // before anything is fetched for it
    return new GpuModel(await Kernels.of(await bytesOf(source), adapter));
  } catch (error) {
    throw new ModelError(error.message, { cause: error });
  }
}

const TRIALS = 5; // runs that are timed, of which the shortest counts
const CLOSE = 1e-3; // of the largest element: how far what two machines compute may be apart

/** How long a run takes, in ms, and what the first gave. */
async function tried(model, inputs) {
  const first = await model.run(inputs);
  let least = Infinity;
  for (let k = 0; k < TRIALS; k++) {
    const begin = performance.now();
    await model.run(inputs);
    least = Math.min(least, performance.now() - begin);
  }
  return [least, first];
}

function close(one, other) {
  const largest = one.reduce((most, x) => Math.max(most, Math.abs(Number(x))), 1e-30);
  return one.every((x, k) => Object.is(x, other[k]) || Math.abs(Number(x) - Number(other[k])) <= CLOSE * largest);
}

/** Something for an input to be tried with: floats of both signs; zeros where numbers may be indices. */
function sample({ name, dtype, shape }) {
  const array = new KINDS[dtype][0](countOf(shape));
  return [name, /^float(32|64)$/.test(dtype) ? array.map((_, k) => (((k * 7) % 13) - 6) / 6) : array];
}

/** The faster of two machines for a model, by a few runs, if both compute the same. */
async function faster(model, other) {
  const inputs = Object.fromEntries(model.inputs.map(sample));
  const bits = model.outputs.find(({ dtype }) => /float16$/.test(dtype));
  if (bits) {
    model.reason = `"${bits.name}" is ${bits.dtype}, whose bits are not compared`;
    return model;
  }
  try {
    const [one, first] = await tried(model, inputs);
    const [two, second] = await tried(other, inputs);
    const apart = model.outputs.find(({ name }) => !close(first[name], second[name]));
    model.reason = apart ? `the GPU computes another "${apart.name}"` : `${one.toFixed(2)} ms here, ${two.toFixed(2)} on the GPU`;
    if (apart || one <= two) return model;
    other.reason = model.reason;
    return other;
  } catch (error) {
    model.reason = error.message;
    return model;
  }
}

/** A model, ready to run.
 *
 * With `gpu`, the file of its kernels, it is run where that is faster: `machine` says where, and `reason` why. There
 * `run` gives a promise, so `await` it. `machine: "webgpu"` or `"wasm"` decides. */
export async function load(source, { gpu, machine = "auto" } = {}) {
  if (!["auto", "wasm", "webgpu"].includes(machine))
    throw new ModelError(`machine is "auto", "wasm" or "webgpu", not ${JSON.stringify(machine)}`);
  if (machine === "webgpu") return onGpu(gpu);
  const model = await onProcessor(source);
  if (gpu === undefined || machine === "wasm") return model;
  try {
    return await faster(model, await onGpu(gpu));
  } catch (error) {
    model.reason = error.message;
    return model;
  }
}

async function onProcessor(source) {
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
