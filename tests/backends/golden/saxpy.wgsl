override block_lanes: u32 = 1u;
struct Given { zero: u32, blocks: u32, first: u32, s_n_0: u32, s_n_1: u32, s_a: u32, n_x: u32, n_y: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> b_x: array<u32>;
@group(0) @binding(2) var<storage, read_write> b_y: array<u32>;

fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn parts_f32(b: u32) -> vec2<i32> {
  let e = i32((b >> 23u) & 255u);
  let m = b & 0x7fffffu;
  if (e != 0) { return vec2<i32>(i32(m | 0x800000u), e); }
  if (m == 0u) { return vec2<i32>(); }
  let by = countLeadingZeros(m) - 8u;
  return vec2<i32>(i32(m << by), 1 - i32(by));
}

fn exact_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ given.zero); }

fn shl_64(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}

fn product_u32(a: u32, b: u32) -> vec2<u32> {
  let c = a & 0xffffu;
  let d = a >> 16u;
  let e = b & 0xffffu;
  let f = b >> 16u;
  let low = c * e;
  let middle = (low >> 16u) + ((c * f) & 0xffffu) + ((d * e) & 0xffffu);
  let high = d * f + ((c * f) >> 16u) + ((d * e) >> 16u) + (middle >> 16u);
  return vec2<u32>((low & 0xffffu) | (middle << 16u), high);
}

fn shr_u64(a: vec2<u32>, by: u32) -> vec2<u32> {
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}

fn jammed_64(a: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return a; }
  if (by >= 64u) { return vec2<u32>(select(0u, 1u, any(a != vec2<u32>())), 0u); }
  let lost = any(shl_64(a, 64u - by) != vec2<u32>());
  return shr_u64(a, by) | vec2<u32>(select(0u, 1u, lost), 0u);
}

fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn sub_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn zeros_64(a: vec2<u32>) -> u32 {
  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}

fn packed_f32(sign: u32, top: u32, e: i32) -> f32 {
  let biased = e + 158;
  if (biased >= 255) { return bitcast<f32>(sign | (0x7f800000u ^ given.zero)); }
  var by = 8u;
  if (biased < 1) { by = u32(9 - max(biased, -40)); }
  if (by > 32u) { return bitcast<f32>(sign); }
  var kept = 0u;
  var rest = top;
  if (by < 32u) {
    kept = top >> by;
    rest = top & ((1u << by) - 1u);
  }
  let half = 1u << (by - 1u);
  kept += select(0u, 1u, rest > half || (rest == half && (kept & 1u) != 0u));
  return bitcast<f32>(sign | (kept + (u32(max(biased - 1, 0)) << 23u)));
}

fn fma_f32(x: f32, y: f32, z: f32) -> f32 {
  let a = bitcast<u32>(x);
  let b = bitcast<u32>(y);
  let c = bitcast<u32>(z);
  let sign = (a ^ b) & 0x80000000u;
  let left = parts_f32(a);
  let right = parts_f32(b);
  let added = parts_f32(c);
  if (left.y == 255 || right.y == 255 || left.x == 0 || right.x == 0) { return exact_f32(exact_f32(x * y) + z); }
  if (added.y == 255) { return z; }
  if (added.x == 0) { return exact_f32(x * y); }
  var p = shl_64(product_u32(u32(left.x), u32(right.x)), 14u);
  var q = shl_64(vec2<u32>(u32(added.x), 0u), 38u);
  var e = left.y + right.y - 314;
  let f = added.y - 188;
  if (e >= f) {
    q = jammed_64(q, u32(e - f));
  } else {
    p = jammed_64(p, u32(f - e));
    e = f;
  }
  var s = sign;
  if (sign == (c & 0x80000000u)) {
    p = add_64(p, q);
  } else if (lt_u64(p, q)) {
    p = sub_64(q, p);
    s = sign ^ 0x80000000u;
  } else {
    p = sub_64(p, q);
  }
  if (all(p == vec2<u32>())) { return bitcast<f32>(given.zero); }
  let n = zeros_64(p);
  p = shl_64(p, n);
  return packed_f32(s, p.y | select(0u, 1u, p.x != 0u), e + 32 - i32(n));
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
  let s_n = vec2<u32>(given.s_n_0, given.s_n_1);
  let s_a = bitcast<f32>(given.s_a);
  var r0_u64: vec2<u32>;
  var p0: bool;
  var r1_f32: f32;
  var r2_f32: f32;
  var r3_f32: f32;
  r0_u64 = s_n;
  p0 = !lt_u64(vec2<u32>(gid, 0u), r0_u64);
  if (p0) {
    return;
  }
  r1_f32 = s_a;
  r2_f32 = bitcast<f32>(b_x[gid]);
  r3_f32 = bitcast<f32>(b_y[gid]);
  r3_f32 = fma_f32(r1_f32, r2_f32, r3_f32);
  b_y[gid] = bitcast<u32>(r3_f32);
}
