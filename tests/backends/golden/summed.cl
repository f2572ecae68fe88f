#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

float bf16_to_f32(ushort h) { return as_float((uint)h << 16); }

__kernel void kernel_main(
    __global uint * status,
    ulong first,
    __global uchar * b_x,
    ulong n_x,
    __global uchar * b_out,
    ulong n_out) {
  const ulong gid = first + get_global_id(0);
  const uint block = (uint)(gid / get_local_size(0)), lane = (uint)get_local_id(0);
  float r0_f32 = 0;
  ulong r4_u64 = 0;
  ulong r5_u64 = 0;
  uint r1_u32 = 0;
  ulong r2_u64 = 0;
  ushort r3_bf16 = 0;
  float r3_f32 = 0;
  r0_f32 = 0x0.0p+0f;
  r4_u64 = (ulong)0x40UL;
  r5_u64 = (ulong)((ulong)gid * (ulong)r4_u64);
  r1_u32 = 0;
  for (uint k3 = 0; k3 < 64u; ++k3) {
    r1_u32 = k3;
    r2_u64 = (ulong)r1_u32;
    r2_u64 = (ulong)((ulong)r2_u64 + (ulong)r5_u64);
    r3_bf16 = *(__global ushort *)(b_x + (long)gid * 128 + (long)k3 * 2);
    r3_f32 = bf16_to_f32(r3_bf16);
    r0_f32 = r0_f32 + r3_f32;
  }
  *(__global float *)(b_out + (long)gid * 4) = r0_f32;
}
