override block_lanes: u32 = 1u;
struct Given { zero: u32, blocks: u32, first: u32, n_x: u32, n_out: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> b_x: array<u32>;
@group(0) @binding(2) var<storage, read_write> b_out: array<u32>;

fn bits_f32(b: u32) -> f32 { return bitcast<f32>(b ^ given.zero); }

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

fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = product_u32(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn bf16_to_f32(h: u32) -> f32 { return bitcast<f32>(h << 16u); }

fn load_16_b_x(at: u32) -> u32 {
  return (b_x[at >> 2u] >> ((at & 3u) * 8u)) & 65535u;
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
  var r0_f32: f32;
  var r4_u64: vec2<u32>;
  var r5_u64: vec2<u32>;
  var r1_u32: u32;
  var r2_u64: vec2<u32>;
  var r3_bf16: u32;
  var r3_f32: f32;
  r0_f32 = bits_f32(0x0u);
  r4_u64 = vec2<u32>(64u, 0u);
  r5_u64 = mul_64(vec2<u32>(gid, 0u), r4_u64);
  r1_u32 = 0u;
  for (var k3 = 0u; k3 < 64u; k3 = k3 + 1u) {
    r1_u32 = k3;
    r2_u64 = vec2<u32>(r1_u32, 0u);
    r2_u64 = add_64(r2_u64, r5_u64);
    r3_bf16 = load_16_b_x(gid * 128u + k3 * 2u);
    r3_f32 = bf16_to_f32(r3_bf16);
    r0_f32 = r0_f32 + r3_f32;
  }
  b_out[gid] = bitcast<u32>(r0_f32);
}
