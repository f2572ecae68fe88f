/* See places.h. Eight truths at a time: their bytes become bits, and a table has the places of each of the 256 ways in
   which eight truths may hold. All eight of its places are written, and as many as hold count: so nothing depends on
   which do, and no branch is guessed. */
#include "places.h"

#include <string.h>

#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) /* not for who looks for faults */
#pragma GCC optimize("O3") /* loops over numbers become vectors */
#endif

#define WORD 8                /* bytes of a mask that are looked at as one number */
#define GLANCE 4              /* words that are passed over together where no truth in them holds */
#define ONES 0x0101010101010101
#define LOW 0x7F7F7F7F7F7F7F7F
#define GATHER 0x0102040810204080 /* times this, the lowest bits of eight bytes stand side by side in the highest one */

/* The eight bits of a number as the places at which they are set, lowest first. */
#define BIT(N, K) (((N) >> (K)) & 1)
#define BELOW(N, K) __builtin_popcount((unsigned)(N) & ((1u << (K)) - 1))
#define PLACE(N, K, P) (BIT(N, K) && BELOW(N, K) == (P) ? (K) : 0)
#define SET(N, P)                                                                                              \
    (PLACE(N, 0, P) + PLACE(N, 1, P) + PLACE(N, 2, P) + PLACE(N, 3, P) + PLACE(N, 4, P) + PLACE(N, 5, P) +     \
     PLACE(N, 6, P) + PLACE(N, 7, P))
#define ROW(N) {SET(N, 0), SET(N, 1), SET(N, 2), SET(N, 3), SET(N, 4), SET(N, 5), SET(N, 6), SET(N, 7)}
#define ROWS4(N) ROW(N), ROW((N) + 1), ROW((N) + 2), ROW((N) + 3)
#define ROWS16(N) ROWS4(N), ROWS4((N) + 4), ROWS4((N) + 8), ROWS4((N) + 12)
#define ROWS64(N) ROWS16(N), ROWS16((N) + 16), ROWS16((N) + 32), ROWS16((N) + 48)
static const int32_t TABLE[256][WORD] = {ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

/* Eight truths as bytes that are 0 or 1, the first of them the lowest. */
static inline uint64_t truths(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, WORD);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return ((((word & LOW) + LOW) | word) >> 7) & ONES;
}

/* Whether no truth holds in some words. */
static inline int nothing(const uint8_t *at)
{
    uint64_t words[GLANCE], any = 0;
    memcpy(words, at, sizeof words);
    for (int k = 0; k < GLANCE; k++)
        any |= words[k];
    return !any;
}

static inline int64_t end_of(int64_t count, int64_t piece)
{
    const int64_t end = (piece + 1) * ESHKOL_PLACES_PIECE;
    return end < count ? end : count;
}

void eshkol_places_count(void *context, int64_t begin, int64_t end)
{
    const EshkolPlaces *places = context;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t last = end_of(places->count, piece);
        int64_t i = piece * ESHKOL_PLACES_PIECE, held = 0;
        while (i + WORD <= last) {
            const int64_t words = (last - i) / WORD < 255 ? (last - i) / WORD : 255;
            uint64_t sums = 0; /* of each byte, up to 255 */
            for (int64_t k = 0; k < words; k++)
                sums += truths(places->mask + i + WORD * k);
            sums = (sums & 0x00FF00FF00FF00FF) + ((sums >> 8) & 0x00FF00FF00FF00FF);
            held += (int64_t)((sums * 0x0001000100010001) >> 48);
            i += WORD * words;
        }
        for (; i < last; i++)
            held += places->mask[i] != 0;
        places->before[piece + 1] = held;
    }
}

void eshkol_places_find(void *context, int64_t begin, int64_t end)
{
    const EshkolPlaces *places = context;
    const uint8_t *mask = places->mask;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t last = end_of(places->count, piece);
        int64_t *out = places->places + places->before[piece], *stop = places->places + places->before[piece + 1];
        int64_t i = piece * ESHKOL_PLACES_PIECE;
        for (; i + WORD * GLANCE <= last && stop - out >= WORD * GLANCE; i += WORD * GLANCE) {
            if (nothing(mask + i))
                continue;
            for (int k = 0; k < GLANCE; k++) { /* there is room for all of them: whatever is written is of this piece */
                const uint64_t word = truths(mask + i + WORD * k);
                const int64_t from = i + WORD * k;
                const int32_t *row = TABLE[(word * GATHER) >> 56];
                for (int n = 0; n < WORD; n++)
                    out[n] = from + row[n];
                out += (word * ONES) >> 56;
            }
        }
        for (; i + WORD <= last && out < stop; i += WORD)
            for (uint64_t word = truths(mask + i); word; word &= word - 1)
                *out++ = i + __builtin_ctzll(word) / 8;
        for (; i < last && out < stop; i++)
            if (mask[i])
                *out++ = i;
    }
}

/* --- range -------------------------------------------------------------------------------------------------------- */

/* A number x counts as u = x - least, as unsigned ones do; of u and of extent - 1 - u, one is negative where x is
   outside, and both are not where it is inside: so no comparison is needed, which few machines have for vectors. */
#define OUTSIDE(NAME, TYPE)                                                                         \
    static int NAME(const TYPE *numbers, int64_t count, uint64_t least, uint64_t most)              \
    {                                                                                               \
        uint64_t wrong = 0;                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                       \
            const uint64_t u = (uint64_t)(int64_t)numbers[i] - least;                               \
            wrong |= u | (most - u);                                                                \
        }                                                                                           \
        return (int)(wrong >> 63);                                                                  \
    }

OUTSIDE(outside_int32, int32_t)
OUTSIDE(outside_int64, int64_t)

void eshkol_places_look(void *context, int64_t begin, int64_t end)
{
    EshkolRange *range = context;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t from = piece * ESHKOL_PLACES_PIECE, now = end_of(range->count, piece) - from;
        const uint64_t least = (uint64_t)range->least, most = (uint64_t)range->extent - 1;
        const int wrong = range->size == 4 ? outside_int32((const int32_t *)range->numbers + from, now, least, most)
                                           : outside_int64((const int64_t *)range->numbers + from, now, least, most);
        if (wrong)
            __atomic_store_n(&range->outside, 1, __ATOMIC_RELAXED);
    }
}
