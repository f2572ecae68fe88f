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
  atomic_fetch_min_explicit((device atomic_uint *)status, (uint)(lane * 3 + site), memory_order_relaxed);
}

kernel void kernel_main(
    device uint *status [[buffer(0)]],
    device uchar *b_x [[buffer(1)]],
    constant ulong *given [[buffer(2)]],
    uint lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint lanes [[threads_per_threadgroup]]) {
  const ulong first = (ulong)given[0];
  const ulong n_x = (ulong)given[1];
  const ulong gid = first + (ulong)group * lanes + lane;
  const uint block = (uint)(gid / lanes);
  uint pc = 0;
  uint depth = 0;
  uint stack[256];
  int r0_i32 = 0;
  for (;;) {
    switch (pc) {
      case 0: {
        r0_i32 = *(device int *)(b_x + (long)gid * 4);
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
        *(device int *)(b_x + (long)gid * 4) = r0_i32;
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
