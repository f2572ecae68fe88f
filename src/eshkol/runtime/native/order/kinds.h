/* rows.h and extremes.h for one kind of processor: KIND(name) is how it calls its functions, TARGET what the processor
   has (as GCC and Clang name it), VECTOR how many a vector has. Included once by each file that chooses these. */
#include "../registers.h"
#include "../scratch.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) /* not for who looks for faults */
#pragma GCC optimize("O3") /* loops over numbers become vectors */
#endif
#define PRAGMA(TEXT) _Pragma(#TEXT)
#if defined(__clang__)
#define CHOOSE(NAMES) PRAGMA(clang attribute push(__attribute__((target(NAMES))), apply_to = function))
#define UNROLL
#else
#define CHOOSE(NAMES) PRAGMA(GCC target(NAMES))
#define UNROLL PRAGMA(GCC unroll 16)
#endif
#ifdef TARGET
CHOOSE(TARGET)
#endif
#include "keys.h"

#define MOST_KEYS 256 /* of a network */

/* Two places of which the keys are compared, and exchanged where they are not in order. */
typedef struct {
    uint8_t one, other;
} Compared;

/* Signed keys: every processor compares those in vectors. */
typedef int32_t Narrow __attribute__((vector_size(VECTOR)));
typedef int64_t Wide __attribute__((vector_size(VECTOR)));

#if VECTOR == 64
#define NARROW_LEAST(x, y) (Narrow)_mm512_min_epi32((__m512i)(x), (__m512i)(y))
/* What is left of both beside the least: exclusive or, for which there are twice as many places in a processor. */
#define NARROW_GREATEST(x, y) \
    (Narrow)_mm512_ternarylogic_epi32((__m512i)(x), (__m512i)(y), (__m512i)NARROW_LEAST(x, y), 0x96)
/* Extremes of 8 bytes take two steps each, where a comparison serves both. */
#define WIDE_ABOVE(x, y) _mm512_cmpgt_epi64_mask((__m512i)(x), (__m512i)(y))
#define WIDE_LEAST(x, y) (Wide)_mm512_mask_blend_epi64(WIDE_ABOVE(x, y), (__m512i)(x), (__m512i)(y))
#define WIDE_GREATEST(x, y) (Wide)_mm512_mask_blend_epi64(WIDE_ABOVE(x, y), (__m512i)(y), (__m512i)(x))
#elif VECTOR == 32
#define NARROW_LEAST(x, y) (Narrow)_mm256_min_epi32((__m256i)(x), (__m256i)(y))
#define NARROW_GREATEST(x, y) (Narrow)_mm256_max_epi32((__m256i)(x), (__m256i)(y))
#define WIDE_CHOSEN(x, y, yes, no) \
    (Wide)_mm256_blendv_epi8((__m256i)(no), (__m256i)(yes), _mm256_cmpgt_epi64((__m256i)(x), (__m256i)(y)))
#elif defined(__aarch64__)
#define NARROW_LEAST(x, y) (Narrow)vminq_s32((int32x4_t)(x), (int32x4_t)(y))
#define NARROW_GREATEST(x, y) (Narrow)vmaxq_s32((int32x4_t)(x), (int32x4_t)(y))
#define WIDE_CHOSEN(x, y, yes, no) \
    (Wide)vbslq_s64(vcgtq_s64((int64x2_t)(x), (int64x2_t)(y)), (int64x2_t)(yes), (int64x2_t)(no))
#else
#define NARROW_LEAST(x, y) NARROW_CHOSEN(x, y, y, x)
#define NARROW_GREATEST(x, y) NARROW_CHOSEN(x, y, x, y)
#define NARROW_CHOSEN(x, y, yes, no) ((((x) > (y)) & (yes)) | (~((x) > (y)) & (no)))
#endif
#ifndef WIDE_LEAST
#ifndef WIDE_CHOSEN
#define WIDE_CHOSEN(x, y, yes, no) ((((x) > (y)) & (yes)) | (~((x) > (y)) & (no)))
#endif
#define WIDE_LEAST(x, y) WIDE_CHOSEN(x, y, y, x)
#define WIDE_GREATEST(x, y) WIDE_CHOSEN(x, y, x, y)
#endif

#define PASTE(A, B) A##B
#define JOIN(A, B) PASTE(A, B)
#define LIST(F, n) JOIN(LIST_, LANES)(F, n)

#if VECTOR == 64
#define NARROW_LANES 16
#define WIDE_LANES 8
#elif VECTOR == 32
#define NARROW_LANES 8
#define WIDE_LANES 4
#else
#define NARROW_LANES 4
#define WIDE_LANES 2
#endif

#define NAME(x) narrow_##x
#define WORD uint32_t
#define BYTES 4
#define V Narrow
#define LANES NARROW_LANES
#define LEAST NARROW_LEAST
#define GREATEST NARROW_GREATEST
#include "network.h"

#define NAME(x) wide_##x
#define WORD uint64_t
#define BYTES 8
#define V Wide
#define LANES WIDE_LANES
#define LEAST WIDE_LEAST
#define GREATEST WIDE_GREATEST
#include "network.h"

#if VECTOR == 64
#define LOAD(from) _mm512_loadu_si512(from)
#define STORE(to, x) _mm512_storeu_si512(to, x)

#define NAME(x) narrow_##x
#define WORD uint32_t
#define V Narrow
#define LANES NARROW_LANES
#define MASK __mmask16
#define LOAD_SOME(mask, from) _mm512_maskz_loadu_epi32(mask, from)
#define SPLAT(x) _mm512_set1_epi32((int32_t)(x))
#define BELOW(x, y) _mm512_cmplt_epu32_mask(x, y)
#define PUSHED(mask, x) _mm512_maskz_compress_epi32(mask, x)
#define SAVED(to, mask, x) _mm512_mask_compressstoreu_epi32(to, mask, x)
#include "quick.h"

#define NAME(x) wide_##x
#define WORD uint64_t
#define V Wide
#define LANES WIDE_LANES
#define MASK __mmask8
#define LOAD_SOME(mask, from) _mm512_maskz_loadu_epi64(mask, from)
#define SPLAT(x) _mm512_set1_epi64((int64_t)(x))
#define BELOW(x, y) _mm512_cmplt_epu64_mask(x, y)
#define PUSHED(mask, x) _mm512_maskz_compress_epi64(mask, x)
#define SAVED(to, mask, x) _mm512_mask_compressstoreu_epi64(to, mask, x)
#include "quick.h"

#undef LOAD
#undef STORE
#define HAS_QUICK 1
#else
#define HAS_QUICK 0
#endif

/* Beyond these it is quicker to merge. */
#define NARROW_RUN MOST_KEYS
#define WIDE_RUN (WIDE_LANES == 2 ? 32 : WIDE_LANES == 4 ? 128 : MOST_KEYS)
#include "rows.h"
#include "extremes.h"

#if defined(TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
