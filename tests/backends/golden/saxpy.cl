#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

#if defined(__aarch64__) || defined(__FMA__)
#define fma_f32 __builtin_fmaf
#else
#define fma_f32 fma
#endif

__kernel void kernel_main(
    __global uint * status,
    ulong first,
    ulong s_n,
    float s_a,
    __global uchar * b_x,
    ulong n_x,
    __global uchar * b_y,
    ulong n_y) {
  const ulong gid = first + get_global_id(0);
  const uint block = (uint)(gid / get_local_size(0)), lane = (uint)get_local_id(0);
  ulong r0_u64 = 0;
  bool p0 = 0;
  float r1_f32 = 0;
  float r2_f32 = 0;
  float r3_f32 = 0;
  r0_u64 = s_n;
  p0 = gid >= r0_u64;
  if (p0) {
    return;
  }
  r1_f32 = s_a;
  r2_f32 = *(__global float *)(b_x + (long)gid * 4);
  r3_f32 = *(__global float *)(b_y + (long)gid * 4);
  r3_f32 = fma_f32(r1_f32, r2_f32, r3_f32);
  *(__global float *)(b_y + (long)gid * 4) = r3_f32;
}
