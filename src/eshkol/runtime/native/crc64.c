/* See crc64.h. Where the processor multiplies without carries, 64 bytes at a time are folded into the next 64, which
   changes nothing modulo the polynomial; the rest, and all of it elsewhere, goes 16 bytes at a time: each byte is
   looked up in a table of its own, so that the lookups need not wait for one another. */
#include "crc64.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0xC96C5795D7870F42u /* of ECMA-182, lowest power first: bit 63 is x^0 */
#define SLICES 16

static uint64_t table[SLICES][256];
static uint64_t fold_512[2], fold_128[2]; /* what moves the two halves of 16 bytes by so many bits */
static int multiplies;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static uint64_t times_x(uint64_t rest)
{
    return (rest >> 1) ^ (rest & 1 ? POLYNOMIAL : 0);
}

static uint64_t power_of_x(int power)
{
    uint64_t found = (uint64_t)1 << 63;
    while (power-- > 0)
        found = times_x(found);
    return found;
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t looked_up(uint64_t word, uint64_t (*slices)[256])
{
    return slices[7][word & 0xff] ^ slices[6][(word >> 8) & 0xff] ^ slices[5][(word >> 16) & 0xff]
        ^ slices[4][(word >> 24) & 0xff] ^ slices[3][(word >> 32) & 0xff] ^ slices[2][(word >> 40) & 0xff]
        ^ slices[1][(word >> 48) & 0xff] ^ slices[0][word >> 56];
}

/* --- products without carries ------------------------------------------------------------------------------------- */

#if defined(__aarch64__) && defined(__linux__) && (defined(__ARM_FEATURE_AES) || !defined(__clang__))
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#define FOLDS
#ifdef __ARM_FEATURE_AES
#define FOLDING
#else
#define FOLDING __attribute__((target("+crypto")))
#endif
typedef uint64x2_t Pair;

static int can_multiply(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
}

FOLDING static inline Pair load(const void *bytes)
{
    return vreinterpretq_u64_u8(vld1q_u8(bytes));
}

FOLDING static inline Pair folded(Pair x, Pair by, Pair next)
{
    const poly128_t low = vmull_p64((poly64_t)vgetq_lane_u64(x, 0), (poly64_t)vgetq_lane_u64(by, 0));
    const poly128_t high = vmull_high_p64(vreinterpretq_p64_u64(x), vreinterpretq_p64_u64(by));
    return veorq_u64(next, veorq_u64(vreinterpretq_u64_p128(low), vreinterpretq_u64_p128(high)));
}

FOLDING static inline Pair added(Pair x, Pair y)
{
    return veorq_u64(x, y);
}

FOLDING static inline void store(uint64_t *words, Pair x)
{
    vst1q_u64(words, x);
}

#elif defined(__x86_64__)
#include <wmmintrin.h>

#define FOLDS
#define FOLDING __attribute__((target("pclmul,sse2")))
typedef __m128i Pair;

static int can_multiply(void)
{
    return __builtin_cpu_supports("pclmul") != 0;
}

FOLDING static inline Pair load(const void *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

FOLDING static inline Pair folded(Pair x, Pair by, Pair next)
{
    const Pair low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(next, _mm_xor_si128(low, high));
}

FOLDING static inline Pair added(Pair x, Pair y)
{
    return _mm_xor_si128(x, y);
}

FOLDING static inline void store(uint64_t *words, Pair x)
{
    _mm_storeu_si128((__m128i *)words, x);
}
#endif

#ifdef FOLDS
/* The rest after `count` blocks of 64 bytes, at least one. */
FOLDING static uint64_t fold(uint64_t rest, const uint8_t *bytes, size_t count)
{
    const uint64_t first[2] = {rest, 0};
    const Pair by_512 = load(fold_512), by_128 = load(fold_128);
    Pair a = added(load(bytes), load(first)), b = load(bytes + 16), c = load(bytes + 32), d = load(bytes + 48);
    while (--count > 0) {
        bytes += 64;
        a = folded(a, by_512, load(bytes));
        b = folded(b, by_512, load(bytes + 16));
        c = folded(c, by_512, load(bytes + 32));
        d = folded(d, by_512, load(bytes + 48));
    }
    uint64_t words[2];
    store(words, folded(folded(folded(a, by_128, b), by_128, c), by_128, d));
    return looked_up(words[0], table + 8) ^ looked_up(words[1], table);
}
#else
static int can_multiply(void)
{
    return 0;
}

static uint64_t fold(uint64_t rest, const uint8_t *bytes, size_t count)
{
    (void)bytes;
    (void)count;
    return rest;
}
#endif

/* ------------------------------------------------------------------------------------------------------------------ */

static void make_tables(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = times_x(rest);
        table[0][byte] = rest;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (unsigned byte = 0; byte < 256; byte++) {
            const uint64_t before = table[slice - 1][byte];
            table[slice][byte] = (before >> 8) ^ table[0][before & 0xff];
        }
    /* The first half stands 64 bits further on; a product of reversed bits is one bit too far. */
    fold_512[0] = power_of_x(512 + 64 - 1), fold_512[1] = power_of_x(512 - 1);
    fold_128[0] = power_of_x(128 + 64 - 1), fold_128[1] = power_of_x(128 - 1);
    multiplies = can_multiply();
}

static uint64_t advanced(uint64_t rest, const uint8_t *bytes, size_t size)
{
    for (; size >= 16; bytes += 16, size -= 16)
        rest = looked_up(rest ^ word_at(bytes), table + 8) ^ looked_up(word_at(bytes + 8), table);
    for (; size > 0; bytes++, size--)
        rest = (rest >> 8) ^ table[0][(rest ^ *bytes) & 0xff];
    return rest;
}

uint64_t eshkol_crc64(uint64_t checksum, const uint8_t *bytes, size_t size)
{
    pthread_once(&made, make_tables);
    uint64_t rest = ~checksum;
    if (multiplies && size >= 128) {
        rest = fold(rest, bytes, size / 64);
        bytes += size / 64 * 64;
        size %= 64;
    }
    return ~advanced(rest, bytes, size);
}

uint64_t eshkol_crc64_by_tables(uint64_t checksum, const uint8_t *bytes, size_t size)
{
    pthread_once(&made, make_tables);
    return ~advanced(~checksum, bytes, size);
}
