override block_lanes: u32 = 1u;
override shared_words: u32 = 1u;
var<workgroup> shared_memory: array<u32, shared_words>;
struct Given { zero: u32, blocks: u32, first: u32, block_x: u32, shared_bytes: u32, n_x: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> b_x: array<u32>;

fn f64_of_bits(b: vec2<u32>) -> f64 { return bitcast<f64>(u64(b.x) | (u64(b.y) << 32u)); }

fn bits_of_f64(x: f64) -> vec2<u32> {
  let b = bitcast<u64>(x);
  return vec2<u32>(u32(b & 0xfffffffflu), u32(b >> 32u));
}

fn load_64_b_x(at: u32) -> vec2<u32> {
  return vec2<u32>(b_x[at + 0u], b_x[at + 1u]);
}

fn store_64_shared_memory(at: u32, value: vec2<u32>) {
  shared_memory[at + 0u] = value.x;
  shared_memory[at + 1u] = value.y;
}

fn load_64_shared_memory(at: u32) -> vec2<u32> {
  return vec2<u32>(shared_memory[at + 0u], shared_memory[at + 1u]);
}

fn store_64_b_x(at: u32, value: vec2<u32>) {
  b_x[at + 0u] = value.x;
  b_x[at + 1u] = value.y;
}

fn fault(lane: u32, site: u32) {
  atomicMin(&status[0], lane * 2u + site);
}

@compute @workgroup_size(block_lanes)
fn kernel_main(
    @builtin(workgroup_id) at_block: vec3<u32>,
    @builtin(num_workgroups) launched: vec3<u32>,
    @builtin(local_invocation_index) lane: u32) {
  let place = at_block.y * launched.x + at_block.x;
  if (place >= given.blocks) { return; }
  let gid = given.first + place * block_lanes + lane;
  let block = given.first / block_lanes + place;
  let block_x = given.block_x;
  let shared_bytes = given.shared_bytes;
  var r0_u32: u32;
  var r1_u32: u32;
  var r2_f64: f64;
  var r3_u32: u32;
  var r4_u32: u32;
  r0_u32 = (lane % block_x);
  r1_u32 = block_x;
  r2_f64 = f64_of_bits(load_64_b_x(gid * 2u));
  if (shared_bytes < 8u || r0_u32 > (shared_bytes - 8u) / 8u) {
    fault(gid, 0u);
  } else {
    {
      let at = r0_u32 * 8u;
      store_64_shared_memory(r0_u32 * 2u, bits_of_f64(r2_f64));
    }
  }
  storageBarrier(); workgroupBarrier();
  r3_u32 = r1_u32 - r0_u32;
  r4_u32 = 1u;
  r3_u32 = r3_u32 - r4_u32;
  if (shared_bytes < 8u || r3_u32 > (shared_bytes - 8u) / 8u) {
    fault(gid, 1u);
  } else {
    {
      let at = r3_u32 * 8u;
      r2_f64 = f64_of_bits(load_64_shared_memory(r3_u32 * 2u));
    }
  }
  store_64_b_x(gid * 2u, bits_of_f64(r2_f64));
}
