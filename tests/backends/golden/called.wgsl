override block_lanes: u32 = 1u;
struct Given { zero: u32, blocks: u32, first: u32, n_x: u32 }
@group(0) @binding(0) var<uniform> given: Given;
@group(0) @binding(1) var<storage, read_write> status: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> b_x: array<u32>;

fn fault(lane: u32, site: u32) {
  atomicMin(&status[0], lane * 3u + site);
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
  var pc: u32;
  var depth: u32;
  var stack: array<u32, 256>;
  var r0_i32: i32;
  for (;;) {
    switch (pc) {
      case 0: {
        r0_i32 = bitcast<i32>(b_x[gid]);
        if (depth >= 256) {
          fault(gid, 0u);
          return;
        } else {
          stack[depth] = 2u;
          depth += 1u;
          pc = 5;
        }
        break;
      }
      case 2: {
        if (depth >= 256) {
          fault(gid, 1u);
          return;
        } else {
          stack[depth] = 3u;
          depth += 1u;
          pc = 5;
        }
        break;
      }
      case 3: {
        b_x[gid] = bitcast<u32>(r0_i32);
        return;
        break;
      }
      case 5: {
        r0_i32 = r0_i32 + r0_i32;
        if (depth == 0) {
          fault(gid, 2u);
          return;
        } else {
          depth -= 1u;
          pc = stack[depth];
        }
        break;
      }
      default: { return; }
    }
  }
}
