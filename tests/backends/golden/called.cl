#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

void fault(__global uint *status, ulong lane, uint site) {
  atomic_min(status, (uint)(lane * 3 + site));
}

__kernel void kernel_main(
    __global uint * status,
    ulong first,
    __global uchar * b_x,
    ulong n_x) {
  const ulong gid = first + get_global_id(0);
  const uint block = (uint)(gid / get_local_size(0)), lane = (uint)get_local_id(0);
  uint pc = 0;
  uint depth = 0;
  uint stack[256];
  int r0_i32 = 0;
  for (;;) {
    switch (pc) {
      case 0: {
        r0_i32 = *(__global int *)(b_x + (long)gid * 4);
        if (depth >= 256) {
          fault(status, gid, 0);
          return;
        } else {
          stack[depth++] = 2;
          pc = 5;
        }
        break;
      }
      case 2: {
        if (depth >= 256) {
          fault(status, gid, 1);
          return;
        } else {
          stack[depth++] = 3;
          pc = 5;
        }
        break;
      }
      case 3: {
        *(__global int *)(b_x + (long)gid * 4) = r0_i32;
        return;
        break;
      }
      case 5: {
        r0_i32 = (int)((uint)r0_i32 + (uint)r0_i32);
        if (depth == 0) {
          fault(status, gid, 2);
          return;
        } else {
          pc = stack[--depth];
        }
        break;
      }
      default: return;
    }
  }
}
