override block_lanes: u32 = 1u;
struct Given { zero: u32, blocks: u32, first: u32, n_x: u32, n_bins: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> b_x: array<u32>;
@group(0) @binding(3) var<storage, read_write> b_bins: array<atomic<u32>>;

fn f32_to_f16(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let s = (b >> 16u) & 0x8000u;
  let m = b & 0x7fffffffu;
  if (m > 0x7f800000u) { return s | 0x7e00u; }
  if (m >= 0x477ff000u) { return s | 0x7c00u; }
  if (m >= 0x38800000u) { return s | ((m + 0xfffu + ((m >> 13u) & 1u) - 0x38000000u) >> 13u); }
  if (m < 0x33000000u) { return s; }
  let by = 126u - (m >> 23u);
  let whole = (m & 0x7fffffu) | 0x800000u;
  let kept = whole >> by;
  let rest = whole & ((1u << by) - 1u);
  let half = 1u << (by - 1u);
  return s | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) != 0u)));
}

fn exact_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ given.zero); }

fn f16_to_f32(h: u32) -> f32 {
  let s = (h & 0x8000u) << 16u;
  let m = h & 0x7fffu;
  let small = bitcast<u32>(f32(m) * 0x1p-24f);
  let bits = select(select((m << 13u) + 0x38000000u, small, m < 0x400u), (m << 13u) | 0x7f800000u, m >= 0x7c00u);
  return bitcast<f32>(bits | s);
}

fn add_f16_in_b_bins(at: u32, value: u32) -> u32 {
  let shift = (at & 3u) * 8u;
  let given_value = value;
  loop {
    let seen = atomicLoad(&b_bins[at >> 2u]);
    let was = (seen >> shift) & 65535u;
    let now = was;
    let after = f32_to_f16(exact_f32(f16_to_f32(now) + f16_to_f32(given_value)));
    let next = (seen & ~(65535u << shift)) | (after << shift);
    if (atomicCompareExchangeWeak(&b_bins[at >> 2u], seen, next).exchanged) { return was; }
  }
  return 0u;
}

fn fault(lane: u32, site: u32) {
  atomicMin(&status[0], lane * 1u + site);
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
  let n_bins = given.n_bins;
  var r0_u32: u32;
  var r1_f16: u32;
  var r2_f16: u32;
  r0_u32 = b_x[gid];
  r1_f16 = 15360u;
  if (n_bins < 2u || r0_u32 > (n_bins - 2u) / 2u) {
    fault(gid, 0u);
    return;
  } else {
    {
      let at = r0_u32 * 2u;
      r2_f16 = add_f16_in_b_bins(at, r1_f16);
    }
  }
}
