#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
float as_float(uint x) { return as_type<float>(x); }
uint as_uint(float x) { return as_type<uint>(x); }
int top_bit(uint x) { return 31 - (int)clz(x); }

uint exchanged_device(volatile device atomic_uint *cell, uint seen, uint now) {
  uint found = seen;
  while (!atomic_compare_exchange_weak_explicit(cell, &found, now, memory_order_relaxed, memory_order_relaxed))
    if (found != seen) return found;
  return seen;
}

uint exchanged_threadgroup(volatile threadgroup atomic_uint *cell, uint seen, uint now) {
  uint found = seen;
  while (!atomic_compare_exchange_weak_explicit(cell, &found, now, memory_order_relaxed, memory_order_relaxed))
    if (found != seen) return found;
  return seen;
}

template <typename T> struct Packed {
  device uchar *place;
  operator T() const {
    T found;
    for (uint k = 0; k < sizeof(T); ++k) ((thread uchar *)&found)[k] = place[k];
    return found;
  }
  void operator=(T value) const {
    for (uint k = 0; k < sizeof(T); ++k) place[k] = ((thread uchar *)&value)[k];
  }
};

#define clz clz_of_words
ulong clz(ulong x) {
  const uint high = (uint)(x >> 32), low = (uint)x;
  return (ulong)(high != 0 ? 31 - top_bit(high) : low != 0 ? 63 - top_bit(low) : 64);
}

#define mul_hi mul_hi_of_words
ulong mul_hi(ulong a, ulong b) {
  const ulong al = a & 0xffffffffUL, ah = a >> 32, bl = b & 0xffffffffUL, bh = b >> 32;
  const ulong middle = ah * bl + (al * bl >> 32);
  return ah * bh + (middle >> 32) + ((middle & 0xffffffffUL) + al * bh >> 32);
}

void fault(device uint *status, ulong lane, uint site) {
  atomic_fetch_min_explicit((device atomic_uint *)status, (uint)(lane * 2 + site), memory_order_relaxed);
}

kernel void kernel_main(
    device uint *status [[buffer(0)]],
    device uchar *b_x [[buffer(1)]],
    constant ulong *given [[buffer(2)]],
    threadgroup uchar *shared [[threadgroup(0)]],
    uint lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lanes [[threads_per_threadgroup]]) {
  const ulong first = (ulong)given[0];
  const uint block_x = (uint)given[1];
  const uint shared_bytes = (uint)given[2];
  const ulong n_x = (ulong)given[3];
  const ulong gid = first + (ulong)group * lanes + lane;
  const uint block = (uint)(gid / lanes);
  uint r0_u32 = 0;
  uint r1_u32 = 0;
  uint r2_u32 = 0;
  uint r3_u32 = 0;
  uint r4_u32 = 0;
  r0_u32 = (lane % block_x);
  r1_u32 = block_x;
  r2_u32 = *(device uint *)(b_x + (long)gid * 4);
  {
    const long at = (long)r0_u32 * 4;
    if (at < 0 || at > (long)shared_bytes - 4) {
      fault(status, gid, 0);
    } else {
      *(threadgroup uint *)(shared + at) = r2_u32;
    }
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  r3_u32 = (uint)((uint)r1_u32 - (uint)r0_u32);
  r4_u32 = 1u;
  r3_u32 = (uint)((uint)r3_u32 - (uint)r4_u32);
  {
    const long at = (long)r3_u32 * 4;
    if (at < 0 || at > (long)shared_bytes - 4) {
      fault(status, gid, 1);
    } else {
      r2_u32 = *(threadgroup uint *)(shared + at);
    }
  }
  *(device uint *)(b_x + (long)gid * 4) = r2_u32;
}
