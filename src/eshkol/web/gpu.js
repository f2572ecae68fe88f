/* Runs the kernels of a model on the browser's GPU, as `eshkol export web` has written them. `eshkol.js` loads this. */

const FORMAT = 1;
const PLACE = 256; // bytes between what launches are told, and between what lanes report
const FINE = 0xffffffff; // what lanes report unless they fail

/** The line that describes a model, and the constants behind it. */
function parts(bytes) {
  const raw = new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset ?? 0, bytes.byteLength);
  const end = raw.indexOf(10);
  if (end < 0) throw new Error("these are no kernels that Eshkol has written");
  const description = JSON.parse(new TextDecoder().decode(raw.subarray(0, end)));
  if (description.format !== FORMAT)
    throw new Error(`the kernels have format ${description.format}, and this gpu.js reads format ${FORMAT}`);
  return [description, raw.subarray(end + 1)];
}

/** What the browser has a GPU by. */
export async function adapterOfPage() {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter();
  if (!adapter) throw new Error("the browser has no GPU for this page");
  return adapter;
}

async function deviceOf(adapter, { needs, buffers }) {
  const requiredLimits = {
    maxStorageBuffersPerShaderStage: Math.max(needs, 8),
    maxStorageBufferBindingSize: Math.max(...buffers, 1 << 27),
    maxBufferSize: Math.max(...buffers, 1 << 28),
  };
  for (const [name, wanted] of Object.entries(requiredLimits))
    if (adapter.limits[name] < wanted) throw new Error(`the GPU has ${name} of ${adapter.limits[name]}; ${wanted} are needed`);
  return adapter.requestDevice({ requiredLimits });
}

/** What `work` makes of the device, or what the device says against it. */
async function asked(device, work) {
  for (const kind of ["validation", "out-of-memory", "internal"]) device.pushErrorScope(kind);
  const made = await work();
  const said = await Promise.all([device.popErrorScope(), device.popErrorScope(), device.popErrorScope()]);
  const wrong = said.find((error) => error !== null);
  if (wrong) throw new Error(`the GPU refuses the model: ${wrong.message}`);
  return made;
}

export class Kernels {
  #device;
  #buffers;
  #launches;
  #status;
  #faults;
  #staging;
  #places; // of the outputs, in the staging buffer
  #last = Promise.resolve();
  #lost = null;

  constructor(description, device) {
    this.description = description;
    this.#device = device;
    device.lost.then(({ message }) => (this.#lost = message || "the GPU does not answer"));
  }

  static async of(bytes, adapter) {
    const [description, constants] = parts(bytes);
    const device = await deviceOf(adapter, description);
    const made = new Kernels(description, device);
    await asked(device, () => made.#prepare(constants));
    return made;
  }

  async #prepare(constants) {
    const { buffers, faults, outputs, steps } = this.description;
    const { STORAGE, COPY_SRC, COPY_DST, UNIFORM, MAP_READ } = GPUBufferUsage;
    const device = this.#device;
    const usage = STORAGE | COPY_SRC | COPY_DST;
    this.#buffers = buffers.map((size) => device.createBuffer({ size, usage }));
    for (const { buffer, at, bytes } of this.description.constants)
      device.queue.writeBuffer(this.#buffers[buffer], 0, constants, at, bytes);
    this.#status = device.createBuffer({ size: PLACE * Math.max(1, faults.length), usage });
    this.#faults = new Uint32Array((PLACE / 4) * faults.length).fill(FINE);
    this.#places = [];
    let end = PLACE * faults.length;
    for (const { buffer } of outputs) {
      this.#places.push(end);
      end += buffers[buffer];
    }
    this.#staging = device.createBuffer({ size: Math.max(4, end), usage: MAP_READ | COPY_DST });
    const told = device.createBuffer({ size: PLACE * Math.max(1, steps.length), usage: UNIFORM | COPY_DST });
    const layouts = new Map();
    const layoutOf = (count) => {
      if (!layouts.has(count)) {
        const visibility = GPUShaderStage.COMPUTE;
        const entries = [{ binding: 0, visibility, buffer: { type: "uniform" } }];
        for (let k = 1; k <= count; k++) entries.push({ binding: k, visibility, buffer: { type: "storage" } });
        layouts.set(count, device.createBindGroupLayout({ entries }));
      }
      return layouts.get(count);
    };
    const modules = this.description.kernels.map((code) => device.createShaderModule({ code }));
    for (const info of await Promise.all(modules.map((module) => module.getCompilationInfo())))
      for (const { type, message, lineNum } of info.messages)
        if (type === "error") throw new Error(`the browser refuses a kernel (line ${lineNum}): ${message}`);
    const made = new Map(); // pipelines by their number and how many buffers they are given
    const pipelineOf = (number, count) => {
      const key = `${number} ${count}`;
      if (!made.has(key)) {
        const { kernel, lanes, shared } = this.description.pipelines[number];
        const constants = shared === null ? { block_lanes: lanes } : { block_lanes: lanes, shared_words: shared };
        const layout = device.createPipelineLayout({ bindGroupLayouts: [layoutOf(count)] });
        const compute = { module: modules[kernel], entryPoint: "kernel_main", constants };
        made.set(key, device.createComputePipelineAsync({ layout, compute }));
      }
      return made.get(key);
    };
    this.#launches = await Promise.all(
      steps.map(async (step, number) => {
        if (step.copy) return step;
        device.queue.writeBuffer(told, PLACE * number, new Uint32Array(step.words));
        const entries = [{ binding: 0, resource: { buffer: told, offset: PLACE * number, size: PLACE } }];
        step.buffers.forEach((k, place) => {
          const resource =
            k < 0 ? { buffer: this.#status, offset: PLACE * (step.check ?? 0), size: 8 } : { buffer: this.#buffers[k] };
          entries.push({ binding: place + 1, resource });
        });
        const pipeline = await pipelineOf(step.pipeline, step.buffers.length);
        return { pipeline, group: device.createBindGroup({ layout: layoutOf(step.buffers.length), entries }), step };
      }),
    );
  }

  /** The outputs' bytes for the inputs' arrays, in the order of their descriptions; one run after another. */
  run(arrays) {
    const mine = this.#last.then(() => this.#run(arrays));
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  async #run(arrays) {
    if (this.#lost !== null) throw new Error(this.#lost);
    const device = this.#device;
    const { buffers, inputs, outputs, faults, messages } = this.description;
    inputs.forEach(({ buffer }, k) => device.queue.writeBuffer(this.#buffers[buffer], 0, inWords(arrays[k])));
    if (faults.length) device.queue.writeBuffer(this.#status, 0, this.#faults);
    const encoder = device.createCommandEncoder();
    let pass = null;
    for (const { pipeline, group, step, copy } of this.#launches) {
      if (copy) {
        pass?.end();
        pass = null;
        encoder.copyBufferToBuffer(this.#buffers[copy[1]], 0, this.#buffers[copy[0]], 0, copy[2]);
        continue;
      }
      pass ??= encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(...step.groups);
    }
    pass?.end();
    if (faults.length) encoder.copyBufferToBuffer(this.#status, 0, this.#staging, 0, PLACE * faults.length);
    outputs.forEach(({ buffer }, k) =>
      encoder.copyBufferToBuffer(this.#buffers[buffer], 0, this.#staging, this.#places[k], buffers[buffer]),
    );
    device.queue.submit([encoder.finish()]);
    try {
      await this.#staging.mapAsync(GPUMapMode.READ);
    } catch (error) {
      throw new Error(this.#lost ?? error.message, { cause: error });
    }
    const found = this.#staging.getMappedRange().slice(0);
    this.#staging.unmap();
    faults.forEach((told, k) => {
      const code = new Uint32Array(found, PLACE * k, 1)[0];
      if (code !== FINE) throw new Error(messages[told[code % told.length]]);
    });
    return outputs.map(({ buffer }, k) => found.slice(this.#places[k], this.#places[k] + buffers[buffer]));
  }
}

/** The bytes of an array, as many as whole words have. */
function inWords(array) {
  const raw = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  if (raw.length % 4 === 0) return raw;
  const whole = new Uint8Array(Math.ceil(raw.length / 4) * 4);
  whole.set(raw);
  return whole;
}
