/* Where the extreme elements of rows stand (see search.h), for one kind of processor (see kinds.h). */
#include "search.h"

#define LONG_ROW (1 << 18) /* elements of a row that are worth several threads */
#define SHARE (1 << 14)
#define LOOKED_AT 512 /* elements of which the extreme is found, before its place */

/* Floats as integers: the same order, NaN beyond all numbers on the side that is looked for. */
#define KEY_OF(NAME, KEY, BITS)                                               \
    static inline KEY NAME(KEY bits, KEY infinity, KEY none)                  \
    {                                                                         \
        const KEY sign = bits >> (BITS - 1);                                  \
        const KEY magnitude = bits & (KEY)(((uint64_t)1 << (BITS - 1)) - 1);  \
        const KEY is_nan = -(KEY)(magnitude > infinity);                      \
        return (((magnitude ^ sign) - sign) & ~is_nan) | (none & is_nan);     \
    }

KEY_OF(single_key, int32_t, 32)
KEY_OF(double_key, int64_t, 64)

#define PLAIN(x, none) (x)
#define SINGLE_KEY(x, none) single_key(x, 0x7F800000, none)
#define DOUBLE_KEY(x, none) double_key(x, 0x7FF0000000000000, none)
#define HALF_KEY(x, none) single_key((int32_t)((uint32_t)(x) << 16), 0x7C000000, none)
#define BRAIN_KEY(x, none) single_key((int32_t)((uint32_t)(x) << 16), 0x7F800000, none)

/* The place of the extreme of `count` elements; a glance finds it without its place, in vectors. */
#define EXTREME_OF(NAME, ELEMENT, KEY, READ, LIMIT, BETTER)                      \
    static int64_t NAME(const ELEMENT *elements, int64_t count, KEY *extreme)    \
    {                                                                            \
        int64_t found = 0;                                                       \
        KEY best = READ(elements[0], LIMIT);                                     \
        for (int64_t from = 0, end; from < count; from = end) {                  \
            end = from + LOOKED_AT < count ? from + LOOKED_AT : count;                 \
            KEY here = READ(elements[from], LIMIT);                              \
            for (int64_t i = from; i < end; i++) {                               \
                const KEY key = READ(elements[i], LIMIT);                        \
                here = key BETTER here ? key : here;                             \
            }                                                                    \
            found = here BETTER best ? from : found;                             \
            best = here BETTER best ? here : best;                               \
        }                                                                        \
        while (READ(elements[found], LIMIT) != best)                             \
            found++;                                                             \
        *extreme = best;                                                         \
        return found;                                                            \
    }

/* The same of floats as they are, in vectors. The first NaN of all is the extreme.
 *
 * GREATEST(x, a) and LEAST(x, a) may lose NaN, so that NOTED(noted, x, y) notes it; on AArch64 they give NaN, which is
 * seen at the end. */
typedef float Floats __attribute__((vector_size(VECTOR)));
typedef double Doubles __attribute__((vector_size(VECTOR)));
typedef int32_t Words __attribute__((vector_size(VECTOR)));
typedef int64_t LongWords __attribute__((vector_size(VECTOR)));

#if defined(__x86_64__)
#define OF_VECTOR(NAME) JOIN(JOIN(_mm, VECTOR_BITS), NAME)
#if VECTOR == 64
#define VECTOR_BITS 512
typedef unsigned Noted;
#define FLOATS_NOTED(noted, x, y) noted |= _mm512_cmp_ps_mask((__m512)(x), (__m512)(y), _CMP_UNORD_Q);
#define DOUBLES_NOTED(noted, x, y) noted |= _mm512_cmp_pd_mask((__m512d)(x), (__m512d)(y), _CMP_UNORD_Q);
#define FLOATS_ANY(noted) ((noted) != 0)
#define DOUBLES_ANY(noted) ((noted) != 0)
#define FLOATS_HAVE(x, y) (_mm512_cmp_ps_mask((__m512)(x), _mm512_set1_ps(y), _CMP_EQ_OQ) != 0)
#define DOUBLES_HAVE(x, y) (_mm512_cmp_pd_mask((__m512d)(x), _mm512_set1_pd(y), _CMP_EQ_OQ) != 0)
#define SINGLES __m512
#define PAIRS __m512d
#elif VECTOR == 32
#define VECTOR_BITS 256
typedef Words Noted;
#define FLOATS_NOTED(noted, x, y) noted |= (Words)_mm256_cmp_ps((__m256)(x), (__m256)(y), _CMP_UNORD_Q);
#define DOUBLES_NOTED(noted, x, y) noted |= (Words)_mm256_cmp_pd((__m256d)(x), (__m256d)(y), _CMP_UNORD_Q);
#define FLOATS_ANY(noted) (_mm256_movemask_ps((__m256)(noted)) != 0)
#define DOUBLES_ANY(noted) (_mm256_movemask_pd((__m256d)(noted)) != 0)
#define SINGLES __m256
#define PAIRS __m256d
#else
#define VECTOR_BITS
typedef Words Noted;
#define FLOATS_NOTED(noted, x, y) noted |= (Words)_mm_cmpunord_ps((__m128)(x), (__m128)(y));
#define DOUBLES_NOTED(noted, x, y) noted |= (Words)_mm_cmpunord_pd((__m128d)(x), (__m128d)(y));
#define FLOATS_ANY(noted) (_mm_movemask_ps((__m128)(noted)) != 0)
#define DOUBLES_ANY(noted) (_mm_movemask_pd((__m128d)(noted)) != 0)
#define SINGLES __m128
#define PAIRS __m128d
#endif
#define FLOATS_GREATEST(x, a) (Floats)OF_VECTOR(_max_ps)((SINGLES)(x), (SINGLES)(a))
#define FLOATS_LEAST(x, a) (Floats)OF_VECTOR(_min_ps)((SINGLES)(x), (SINGLES)(a))
#define DOUBLES_GREATEST(x, a) (Doubles)OF_VECTOR(_max_pd)((PAIRS)(x), (PAIRS)(a))
#define DOUBLES_LEAST(x, a) (Doubles)OF_VECTOR(_min_pd)((PAIRS)(x), (PAIRS)(a))
#else
typedef Words Noted;
#define FLOATS_ANY(noted) (any_bits((const char *)&(noted)))
#define DOUBLES_ANY FLOATS_ANY
#if defined(__aarch64__)
#define FLOATS_GREATEST(x, a) (Floats)vmaxq_f32((float32x4_t)(x), (float32x4_t)(a))
#define FLOATS_LEAST(x, a) (Floats)vminq_f32((float32x4_t)(x), (float32x4_t)(a))
#define DOUBLES_GREATEST(x, a) (Doubles)vmaxq_f64((float64x2_t)(x), (float64x2_t)(a))
#define DOUBLES_LEAST(x, a) (Doubles)vminq_f64((float64x2_t)(x), (float64x2_t)(a))
#define FLOATS_NOTED(noted, x, y)
#define DOUBLES_NOTED(noted, x, y)
#else
#define CHOSEN(mask, MASKS, yes, no) (((mask) & (MASKS)(yes)) | (~(mask) & (MASKS)(no)))
#define FLOATS_GREATEST(x, a) (Floats)CHOSEN((x) > (a), Words, x, a)
#define FLOATS_LEAST(x, a) (Floats)CHOSEN((x) < (a), Words, x, a)
#define DOUBLES_GREATEST(x, a) (Doubles)CHOSEN((x) > (a), LongWords, x, a)
#define DOUBLES_LEAST(x, a) (Doubles)CHOSEN((x) < (a), LongWords, x, a)
#define FLOATS_NOTED(noted, x, y) noted |= ((x) != (x)) | ((y) != (y));
#define DOUBLES_NOTED(noted, x, y) noted |= (Words)(((x) != (x)) | ((y) != (y)));
#endif
#endif

static inline int any_bits(const char *vector)
{
    uint64_t words[VECTOR / 8], any = 0;
    memcpy(words, vector, sizeof words);
    for (int k = 0; k < VECTOR / 8; k++)
        any |= words[k];
    return any != 0;
}

/* Whether one of the lanes is a number. */
#ifndef FLOATS_HAVE
static inline int floats_have(Floats x, float number)
{
    const Words same = x == number;
    return any_bits((const char *)&same);
}

static inline int doubles_have(Doubles x, double number)
{
    const LongWords same = x == number;
    return any_bits((const char *)&same);
}

#define FLOATS_HAVE(x, y) floats_have(x, y)
#define DOUBLES_HAVE(x, y) doubles_have(x, y)
#endif

#define SIDE_BY_SIDE 4 /* vectors, so that one does not wait for another */
#define LOADED(vector, k) memcpy(&vector, memory + (size_t)i * sizeof here + k * sizeof vector, sizeof vector);

#define EXTREME_OF_FLOATS(NAME, ELEMENT, SOME, MASKS, KIND_OF, BEST, KEY, READ, LIMIT, BETTER)        \
    static int64_t NAME(const KEY *bits, int64_t count, KEY *extreme)                                   \
    {                                                                                                   \
        enum { LANES_HERE = VECTOR / sizeof(ELEMENT), STEP = SIDE_BY_SIDE * LANES_HERE };                \
        const char *memory = (const char *)bits;                                                        \
        int64_t found = 0;                                                                              \
        ELEMENT best;                                                                                   \
        memcpy(&best, memory, sizeof best);                                                             \
        for (int64_t from = 0, end; from < count; from = end) {                                         \
            int64_t i = from;                                                                           \
            ELEMENT here = best;                                                                        \
            int numbers = 1;                                                                            \
            end = from + LOOKED_AT < count ? from + LOOKED_AT : count;                                        \
            if (end - from >= STEP) {                                                                   \
                SOME a, b, c, d;                                                                      \
                Noted noted = {0};                                                                      \
                LOADED(a, 0) LOADED(b, 1) LOADED(c, 2) LOADED(d, 3)                                     \
                for (; i + STEP <= end; i += STEP) {                                                    \
                    SOME x, y, z, w;                                                                  \
                    LOADED(x, 0) LOADED(y, 1) LOADED(z, 2) LOADED(w, 3)                                 \
                    KIND_OF##_NOTED(noted, x, y) KIND_OF##_NOTED(noted, z, w)                           \
                    a = KIND_OF##_##BEST(x, a);                                                         \
                    b = KIND_OF##_##BEST(y, b);                                                         \
                    c = KIND_OF##_##BEST(z, c);                                                         \
                    d = KIND_OF##_##BEST(w, d);                                                         \
                }                                                                                       \
                a = KIND_OF##_##BEST(KIND_OF##_##BEST(a, b), KIND_OF##_##BEST(c, d));                   \
                if (i < end) { /* some are looked at again */                                           \
                    SOME x;                                                                           \
                    for (; i + (int64_t)LANES_HERE <= end; i += LANES_HERE) {                           \
                        LOADED(x, 0)                                                                    \
                        KIND_OF##_NOTED(noted, x, x)                                                    \
                        a = KIND_OF##_##BEST(x, a);                                                     \
                    }                                                                                   \
                    i = end - LANES_HERE;                                                               \
                    LOADED(x, 0)                                                                        \
                    KIND_OF##_NOTED(noted, x, x)                                                        \
                    a = KIND_OF##_##BEST(x, a);                                                         \
                    i = end;                                                                            \
                }                                                                                       \
                ELEMENT lanes[LANES_HERE];                                                              \
                memcpy(lanes, &a, sizeof lanes);                                                        \
                const MASKS none = a != a;                                                              \
                numbers = !KIND_OF##_ANY(noted) && !any_bits((const char *)&none);                      \
                for (int half = LANES_HERE / 2; half > 0; half /= 2)                                    \
                    for (int k = 0; k < half; k++)                                                      \
                        lanes[k] = lanes[k + half] BETTER lanes[k] ? lanes[k + half] : lanes[k];        \
                here = lanes[0] BETTER here ? lanes[0] : here;                                          \
            }                                                                                           \
            for (; i < end; i++) {                                                                      \
                ELEMENT x;                                                                              \
                memcpy(&x, memory + (size_t)i * sizeof x, sizeof x);                                    \
                here = x BETTER here ? x : here;                                                        \
                numbers &= x == x;                                                                      \
            }                                                                                           \
            if (!numbers) {                                                                             \
                for (found = from; READ(bits[found], LIMIT) != LIMIT; found++)                          \
                    ;                                                                                   \
                *extreme = LIMIT;                                                                       \
                return found;                                                                           \
            }                                                                                           \
            found = here BETTER best ? from : found;                                                    \
            best = here;                                                                                \
        }                                                                                               \
        for (SOME x; found + (int64_t)LANES_HERE <= count; found += LANES_HERE) {                     \
            memcpy(&x, memory + (size_t)found * sizeof best, sizeof x);                                 \
            if (KIND_OF##_HAVE(x, best))                                                                \
                break;                                                                                  \
        }                                                                                               \
        for (ELEMENT x;; found++) {                                                                     \
            memcpy(&x, memory + (size_t)found * sizeof x, sizeof x);                                    \
            if (x == best)                                                                              \
                break;                                                                                  \
        }                                                                                               \
        *extreme = READ(bits[found], LIMIT);                                                            \
        return found;                                                                                   \
    }

/* Of each row; a long one in pieces, of which the first that has the best extreme counts. */
typedef struct {
    const EshkolExtreme *extreme;
    const void *row;
    int64_t piece;
    int64_t *places;
    void *keys;
} Long;

#define PIECES 64 /* most of a row */

#define EXTREME(TYPE, ELEMENT, KEY, READ, LEAST, GREATEST)       \
    EXTREME_OF(greatest_##TYPE, ELEMENT, KEY, READ, GREATEST, >) \
    EXTREME_OF(least_##TYPE, ELEMENT, KEY, READ, LEAST, <)       \
    EXTREME_OF_ROWS(TYPE, ELEMENT, KEY)

#define EXTREME_OF_ROWS(TYPE, ELEMENT, KEY)                                                             \
    static void pieces_##TYPE(void *context, int64_t begin, int64_t end)                                \
    {                                                                                                   \
        const Long *row = context;                                                                      \
        for (int64_t k = begin; k < end; k++) {                                                         \
            const int64_t from = k * row->piece, left = row->extreme->length - from;                    \
            const int64_t count = left < row->piece ? left : row->piece;                                \
            row->places[k] = from + (row->extreme->least ? least_##TYPE : greatest_##TYPE)(             \
                (const ELEMENT *)row->row + from, count, (KEY *)row->keys + k);                         \
        }                                                                                               \
    }                                                                                                   \
    static void rows_##TYPE(const EshkolExtreme *extreme, int64_t begin, int64_t end)                   \
    {                                                                                                   \
        const int64_t length = extreme->length;                                                         \
        for (int64_t k = begin; k < end; k++) {                                                         \
            int64_t places[PIECES];                                                                     \
            KEY keys[PIECES];                                                                           \
            const int64_t even = (length + PIECES - 1) / PIECES, piece = even > SHARE ? even : SHARE;   \
            const int64_t count = length < LONG_ROW ? 1 : (length + piece - 1) / piece;                   \
            Long row = {extreme, (const ELEMENT *)extreme->rows + k * length, count == 1 ? length : piece, places, \
                        keys};                                                                          \
            if (count == 1 || eshkol_parallel_for(*extreme->pool, pieces_##TYPE, &row, count, 1) != 0)  \
                pieces_##TYPE(&row, 0, count);                                                          \
            int64_t best = 0;                                                                           \
            for (int64_t j = 1; j < count; j++)                                                         \
                best = (extreme->least ? keys[j] < keys[best] : keys[j] > keys[best]) ? j : best;       \
            extreme->out[k] = places[best];                                                             \
        }                                                                                               \
    }

EXTREME(int8, int8_t, int8_t, PLAIN, 0, 0)
EXTREME(int16, int16_t, int16_t, PLAIN, 0, 0)
EXTREME(int32, int32_t, int32_t, PLAIN, 0, 0)
EXTREME(int64, int64_t, int64_t, PLAIN, 0, 0)
EXTREME(uint8, uint8_t, uint8_t, PLAIN, 0, 0)
EXTREME(uint16, uint16_t, uint16_t, PLAIN, 0, 0)
EXTREME(uint32, uint32_t, uint32_t, PLAIN, 0, 0)
EXTREME(uint64, uint64_t, uint64_t, PLAIN, 0, 0)
EXTREME(float16, uint16_t, int32_t, HALF_KEY, INT32_MIN, INT32_MAX)
EXTREME(bfloat16, uint16_t, int32_t, BRAIN_KEY, INT32_MIN, INT32_MAX)
EXTREME_OF_FLOATS(greatest_float32, float, Floats, Words, FLOATS, GREATEST, int32_t, SINGLE_KEY, INT32_MAX, >)
EXTREME_OF_FLOATS(least_float32, float, Floats, Words, FLOATS, LEAST, int32_t, SINGLE_KEY, INT32_MIN, <)
EXTREME_OF_FLOATS(greatest_float64, double, Doubles, LongWords, DOUBLES, GREATEST, int64_t, DOUBLE_KEY, INT64_MAX, >)
EXTREME_OF_FLOATS(least_float64, double, Doubles, LongWords, DOUBLES, LEAST, int64_t, DOUBLE_KEY, INT64_MIN, <)
EXTREME_OF_ROWS(float32, int32_t, int32_t)
EXTREME_OF_ROWS(float64, int64_t, int64_t)

void KIND(eshkol_order_extreme)(void *context, int64_t begin, int64_t end)
{
    static void (*const of_type[])(const EshkolExtreme *, int64_t, int64_t) = {
        rows_int8, rows_int16, rows_int32, rows_int64, rows_uint8, rows_uint16, rows_uint32, rows_uint64,
        rows_float16, rows_bfloat16, rows_float32, rows_float64,
    };
    const EshkolExtreme *extreme = context;
    of_type[extreme->type](extreme, begin, end);
}
