#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

void fault(__global uint *status, ulong lane, uint site) {
  atomic_min(status, (uint)(lane * 2 + site));
}

__kernel void kernel_main(
    __global uint * status,
    ulong first,
    uint block_x,
    __local uchar * shared,
    uint shared_bytes,
    __global uchar * b_x,
    ulong n_x) {
  const ulong gid = first + get_global_id(0);
  const uint block = (uint)(gid / get_local_size(0)), lane = (uint)get_local_id(0);
  uint r0_u32 = 0;
  uint r1_u32 = 0;
  double r2_f64 = 0;
  uint r3_u32 = 0;
  uint r4_u32 = 0;
  r0_u32 = (lane % block_x);
  r1_u32 = block_x;
  r2_f64 = *(__global double *)(b_x + (long)gid * 8);
  {
    const long at = (long)r0_u32 * 8;
    if (at < 0 || at > (long)shared_bytes - 8) {
      fault(status, gid, 0);
    } else {
      *(__local double *)(shared + at) = r2_f64;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  r3_u32 = (uint)((uint)r1_u32 - (uint)r0_u32);
  r4_u32 = 1u;
  r3_u32 = (uint)((uint)r3_u32 - (uint)r4_u32);
  {
    const long at = (long)r3_u32 * 8;
    if (at < 0 || at > (long)shared_bytes - 8) {
      fault(status, gid, 1);
    } else {
      r2_f64 = *(__local double *)(shared + at);
    }
  }
  *(__global double *)(b_x + (long)gid * 8) = r2_f64;
}
