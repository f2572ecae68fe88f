override block_lanes: u32 = 1u;
override shared_words: u32 = 1u;
var<workgroup> shared_memory: array<atomic<u32>, shared_words>;
struct Given { zero: u32, blocks: u32, first: u32, block_x: u32, shared_bytes: u32, n_x: u32, n_q: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> b_x: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> b_q: array<atomic<u32>>;

fn load_8_b_x(at: u32) -> u32 {
  return (atomicLoad(&b_x[at >> 2u]) >> ((at & 3u) * 8u)) & 255u;
}

fn store_8_shared_memory(at: u32, value: u32) {
  let shift = (at & 3u) * 8u;
  let rest = ~(255u << shift);
  loop {
    let seen = atomicLoad(&shared_memory[at >> 2u]);
    if (atomicCompareExchangeWeak(&shared_memory[at >> 2u], seen, (seen & rest) | (value << shift)).exchanged) { break; }
  }
}

fn load_8_shared_memory(at: u32) -> u32 {
  return (atomicLoad(&shared_memory[at >> 2u]) >> ((at & 3u) * 8u)) & 255u;
}

fn store_8_b_x(at: u32, value: u32) {
  let shift = (at & 3u) * 8u;
  let rest = ~(255u << shift);
  loop {
    let seen = atomicLoad(&b_x[at >> 2u]);
    if (atomicCompareExchangeWeak(&b_x[at >> 2u], seen, (seen & rest) | (value << shift)).exchanged) { break; }
  }
}

fn load_bytes_16_b_q(at: u32) -> u32 {
  return load_8_b_q(at) | (load_8_b_q(at + 1u) << 8u);
}

fn load_8_b_q(at: u32) -> u32 {
  return (atomicLoad(&b_q[at >> 2u]) >> ((at & 3u) * 8u)) & 255u;
}

fn store_bytes_16_b_q(at: u32, value: u32) {
  store_8_b_q(at + 0u, (value >> 0u) & 255u);
  store_8_b_q(at + 1u, (value >> 8u) & 255u);
}

fn store_8_b_q(at: u32, value: u32) {
  let shift = (at & 3u) * 8u;
  let rest = ~(255u << shift);
  loop {
    let seen = atomicLoad(&b_q[at >> 2u]);
    if (atomicCompareExchangeWeak(&b_q[at >> 2u], seen, (seen & rest) | (value << shift)).exchanged) { break; }
  }
}

fn fault(lane: u32, site: u32) {
  atomicMin(&status[0], lane * 4u + site);
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
  let n_q = given.n_q;
  var r0_i8: i32;
  var r1_u32: u32;
  var r2_i8: i32;
  var r3_u16: u32;
  var r4_i64: vec2<u32>;
  r0_i8 = (bitcast<i32>(load_8_b_x(gid)) << 24u) >> 24u;
  r1_u32 = (lane % block_x);
  if (shared_bytes < 1u || r1_u32 > shared_bytes - 1u) {
    fault(gid, 0u);
  } else {
    {
      let at = r1_u32;
      store_8_shared_memory(at, (bitcast<u32>(r0_i8) & 255u));
    }
  }
  storageBarrier(); workgroupBarrier();
  if (shared_bytes < 1u || r1_u32 > shared_bytes - 1u) {
    fault(gid, 1u);
  } else {
    {
      let at = r1_u32;
      r2_i8 = (bitcast<i32>(load_8_shared_memory(at)) << 24u) >> 24u;
    }
  }
  r2_i8 = (abs(r2_i8) << 24u) >> 24u;
  store_8_b_x(gid, (bitcast<u32>(r2_i8) & 255u));
  if (n_q < 5u) {
    fault(gid, 2u);
  } else {
    {
      let at = 3u;
      r3_u16 = load_bytes_16_b_q(at);
    }
  }
  r4_i64 = vec2<u32>(4294967295u, 4294967295u);
  if (n_q < 7u) {
    fault(gid, 3u);
  } else {
    {
      let at = 5u;
      store_bytes_16_b_q(at, r3_u16);
    }
  }
}
