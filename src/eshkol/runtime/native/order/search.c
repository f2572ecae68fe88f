/* See search.h. */
#include "search.h"

#include <stddef.h>
#include <string.h>

#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) /* not for who looks for faults */
#pragma GCC optimize("O3") /* loops over numbers become vectors */
#endif

#define AT_ONCE 8    /* values that are searched for side by side, so that one does not wait for another's memory */
#define EVEN 4096    /* most boundaries that are looked at to find out whether they lie evenly */
#define SHARED (1 << 18) /* elements of a row that are worth several threads */
#define PIECE (1 << 14)
#define GLANCE 128   /* elements of which the extreme is found, before its place */

/* Numbers of 16 bits as integers of the same order. */
static inline int32_t half_key(uint16_t bits, uint16_t infinity)
{
    const int32_t magnitude = bits & 0x7FFF;
    return magnitude > infinity ? 0x8000 : bits & 0x8000 ? -magnitude : magnitude;
}

#define AS_IT_IS(x) (x)
#define FROM_FLOAT16(x) half_key(x, 0x7C00)
#define FROM_BFLOAT16(x) half_key(x, 0x7F80)

/* --- search ------------------------------------------------------------------------------------------------------- */

/* Steps of half the length each, without branches. `PASSED(b, v)`: whether boundary b stands before v. */
#define STEPS(TYPE, READ, PASSED)                                                              \
    for (; i < count; i += AT_ONCE) {                                                          \
        const int64_t now = count - i < AT_ONCE ? count - i : AT_ONCE;                         \
        TYPE value[AT_ONCE];                                                                   \
        int64_t low[AT_ONCE];                                                                  \
        for (int64_t k = 0; k < AT_ONCE; k++) {                                                \
            value[k] = READ(values[k < now ? i + k : i]);                                      \
            low[k] = 0;                                                                        \
        }                                                                                      \
        for (int64_t left = extent; left > 1;) {                                               \
            const int64_t half = left / 2;                                                     \
            for (int64_t k = 0; k < AT_ONCE; k++) {                                            \
                const TYPE b = READ(boundaries[low[k] + half - 1]);                            \
                low[k] += half & -(int64_t)(PASSED(b, value[k]));                              \
            }                                                                                  \
            left -= half;                                                                      \
        }                                                                                      \
        for (int64_t k = 0; k < now; k++) {                                                    \
            const TYPE b = READ(boundaries[low[k]]);                                           \
            out[i + k] = low[k] + (PASSED(b, value[k]));                                       \
        }                                                                                      \
    }

#define BEFORE(b, v) ((b) < (v))
#define NOT_BEHIND(b, v) ((b) <= (v))
#define BEFORE_FLOAT(b, v) (((b) < (v)) | (((v) != (v)) & ((b) == (b))))
#define NOT_BEHIND_FLOAT(b, v) (((b) <= (v)) | ((v) != (v)))

#define SEARCH(NAME, ELEMENT, TYPE, READ, LEFT, RIGHT)                                                           \
    static void NAME(const ELEMENT *boundaries, int64_t extent, const ELEMENT *values, int64_t count, int right, \
                     int64_t *out)                                                                               \
    {                                                                                                            \
        int64_t i = 0;                                                                                           \
        if (right)                                                                                               \
            STEPS(TYPE, READ, RIGHT)                                                                             \
        else                                                                                                     \
            STEPS(TYPE, READ, LEFT)                                                                              \
    }

SEARCH(search_int8, int8_t, int8_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_int16, int16_t, int16_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_int32, int32_t, int32_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_int64, int64_t, int64_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_uint8, uint8_t, uint8_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_uint16, uint16_t, uint16_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_uint32, uint32_t, uint32_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_uint64, uint64_t, uint64_t, AS_IT_IS, BEFORE, NOT_BEHIND)
SEARCH(search_float16, uint16_t, int32_t, FROM_FLOAT16, BEFORE, NOT_BEHIND)
SEARCH(search_bfloat16, uint16_t, int32_t, FROM_BFLOAT16, BEFORE, NOT_BEHIND)
SEARCH(search_any_float32, float, float, AS_IT_IS, BEFORE_FLOAT, NOT_BEHIND_FLOAT)
SEARCH(search_any_float64, double, double, AS_IT_IS, BEFORE_FLOAT, NOT_BEHIND_FLOAT)

/* Among boundaries that lie evenly, the number that a line gives is less than a half away from each one's own: so all
   boundaries but the nearest are told apart from a value by that. The line rises, as rounding keeps order. */
#define EVENLY(NAME, TYPE, ANY)                                                                                   \
    static void NAME(const TYPE *boundaries, int64_t extent, const TYPE *values, int64_t count, int right,        \
                     int64_t *out)                                                                                \
    {                                                                                                             \
        const TYPE first = boundaries[0], last = (TYPE)(extent - 1), scale = last / (boundaries[extent - 1] - first); \
        int even = extent > 2 && extent <= EVEN && 2 * extent <= count && scale > 0 && scale < (TYPE)1e30;        \
        for (int64_t k = 0; even && k < extent; k++) {                                                            \
            const TYPE away = (boundaries[k] - first) * scale - (TYPE)k;                                          \
            even = away > (TYPE)-0.25 && away < (TYPE)0.25;                                                       \
        }                                                                                                         \
        if (!even) {                                                                                              \
            ANY(boundaries, extent, values, count, right, out);                                                   \
            return;                                                                                               \
        }                                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                                     \
            const TYPE value = values[i];                                                                         \
            TYPE line = (value - first) * scale;                                                                  \
            line = line > 0 ? line : 0; /* NaN too */                                                             \
            line = line < last ? line : last;                                                                     \
            const int32_t nearest = (int32_t)(line + (TYPE)0.5);                                                  \
            const TYPE b = boundaries[nearest];                                                                   \
            const int64_t found = nearest + (right ? b <= value : b < value);                                     \
            out[i] = value == value ? found : extent;                                                             \
        }                                                                                                         \
    }

EVENLY(search_float32, float, search_any_float32)
EVENLY(search_float64, double, search_any_float64)

void eshkol_order_search(void *context, int64_t begin, int64_t end)
{
    const EshkolSearch *search = context;
    const int64_t extent = search->extent, of_row = search->values_of_row;
    if (extent == 0) {
        for (int64_t i = begin; i < end; i++)
            search->out[i] = 0;
        return;
    }
    for (int64_t from = begin, until; from < end; from = until) { /* what belongs to one row of boundaries */
        const int64_t row = from / of_row;
        until = (row + 1) * of_row < end ? (row + 1) * of_row : end;
#define OF(NUMBER, NAME, ELEMENT)                                                                             \
    case NUMBER:                                                                                              \
        NAME((const ELEMENT *)search->boundaries + row * extent, extent, (const ELEMENT *)search->values + from, \
             until - from, search->right != 0, search->out + from);                                           \
        break;
        switch (search->type) {
            OF(ESHKOL_SEARCH_INT8, search_int8, int8_t)
            OF(ESHKOL_SEARCH_INT16, search_int16, int16_t)
            OF(ESHKOL_SEARCH_INT32, search_int32, int32_t)
            OF(ESHKOL_SEARCH_INT64, search_int64, int64_t)
            OF(ESHKOL_SEARCH_UINT8, search_uint8, uint8_t)
            OF(ESHKOL_SEARCH_UINT16, search_uint16, uint16_t)
            OF(ESHKOL_SEARCH_UINT32, search_uint32, uint32_t)
            OF(ESHKOL_SEARCH_UINT64, search_uint64, uint64_t)
            OF(ESHKOL_SEARCH_FLOAT16, search_float16, uint16_t)
            OF(ESHKOL_SEARCH_BFLOAT16, search_bfloat16, uint16_t)
            OF(ESHKOL_SEARCH_FLOAT32, search_float32, float)
            OF(ESHKOL_SEARCH_FLOAT64, search_float64, double)
        }
#undef OF
    }
}

/* --- extremes ----------------------------------------------------------------------------------------------------- */

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
#define SINGLE(x, none) single_key(x, 0x7F800000, none)
#define DOUBLE(x, none) double_key(x, 0x7FF0000000000000, none)
#define SHORT(x, none) single_key((int32_t)((uint32_t)(x) << 16), 0x7C000000, none)
#define SHORTER(x, none) single_key((int32_t)((uint32_t)(x) << 16), 0x7F800000, none)

/* The place of the extreme of `count` elements; a glance finds it without its place, in vectors. */
#define EXTREME_OF(NAME, ELEMENT, KEY, READ, LIMIT, BETTER)                      \
    static int64_t NAME(const ELEMENT *elements, int64_t count, KEY *extreme)    \
    {                                                                            \
        int64_t found = 0;                                                       \
        KEY best = READ(elements[0], LIMIT);                                     \
        for (int64_t from = 0, end; from < count; from = end) {                  \
            end = from + GLANCE < count ? from + GLANCE : count;                 \
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

/* The same of floats as they are, in vectors of 16 bytes. The first NaN of all is the extreme. */
typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
typedef int32_t Words __attribute__((vector_size(16)));
typedef int64_t LongWords __attribute__((vector_size(16)));

#define SIDE_BY_SIDE 4 /* vectors, so that one does not wait for another */
#define LOADED(vector, k) memcpy(&vector, memory + (size_t)i * sizeof here + k * sizeof vector, sizeof vector);
#define CHOSEN(mask, MASKS, yes, no) (((mask) & (MASKS)(yes)) | (~(mask) & (MASKS)(no)))

#define EXTREME_OF_FLOATS(NAME, ELEMENT, VECTOR, MASKS, KEY, READ, LIMIT, BETTER)                    \
    static int64_t NAME(const KEY *bits, int64_t count, KEY *extreme)                                \
    {                                                                                                \
        enum { LANES = sizeof(VECTOR) / sizeof(ELEMENT), STEP = SIDE_BY_SIDE * LANES };              \
        const char *memory = (const char *)bits;                                                     \
        int64_t found = 0;                                                                           \
        ELEMENT best;                                                                                \
        memcpy(&best, memory, sizeof best);                                                          \
        for (int64_t from = 0, end; from < count; from = end) {                                      \
            int64_t i = from;                                                                        \
            ELEMENT here = best;                                                                     \
            int numbers = 1;                                                                         \
            end = from + GLANCE < count ? from + GLANCE : count;                                     \
            if (end - from >= STEP) {                                                                \
                VECTOR a, b, c, d;                                                                   \
                MASKS same = ~(MASKS){0};                                                            \
                LOADED(a, 0) LOADED(b, 1) LOADED(c, 2) LOADED(d, 3)                                  \
                for (; i + STEP <= end; i += STEP) {                                                 \
                    VECTOR x, y, z, w;                                                               \
                    LOADED(x, 0) LOADED(y, 1) LOADED(z, 2) LOADED(w, 3)                              \
                    a = (VECTOR)CHOSEN(x BETTER a, MASKS, x, a);                                     \
                    b = (VECTOR)CHOSEN(y BETTER b, MASKS, y, b);                                     \
                    c = (VECTOR)CHOSEN(z BETTER c, MASKS, z, c);                                     \
                    d = (VECTOR)CHOSEN(w BETTER d, MASKS, w, d);                                     \
                    same &= (x == x) & (y == y) & (z == z) & (w == w);                               \
                }                                                                                    \
                a = (VECTOR)CHOSEN(b BETTER a, MASKS, b, a);                                         \
                c = (VECTOR)CHOSEN(d BETTER c, MASKS, d, c);                                         \
                a = (VECTOR)CHOSEN(c BETTER a, MASKS, c, a);                                         \
                for (int lane = 0; lane < LANES; lane++) {                                           \
                    here = a[lane] BETTER here ? a[lane] : here;                                     \
                    numbers &= same[lane] != 0;                                                      \
                }                                                                                    \
            }                                                                                        \
            for (; i < end; i++) {                                                                   \
                ELEMENT x;                                                                           \
                memcpy(&x, memory + (size_t)i * sizeof x, sizeof x);                                 \
                here = x BETTER here ? x : here;                                                     \
                numbers &= x == x;                                                                   \
            }                                                                                        \
            if (!numbers) {                                                                          \
                for (found = from; READ(bits[found], LIMIT) != LIMIT; found++)                       \
                    ;                                                                                \
                *extreme = LIMIT;                                                                    \
                return found;                                                                        \
            }                                                                                        \
            found = here BETTER best ? from : found;                                                 \
            best = here;                                                                             \
        }                                                                                            \
        for (ELEMENT x;; found++) {                                                                  \
            memcpy(&x, memory + (size_t)found * sizeof x, sizeof x);                                 \
            if (x == best)                                                                           \
                break;                                                                               \
        }                                                                                            \
        *extreme = READ(bits[found], LIMIT);                                                         \
        return found;                                                                                \
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
            const int64_t even = (length + PIECES - 1) / PIECES, piece = even > PIECE ? even : PIECE;   \
            const int64_t count = length < SHARED ? 1 : (length + piece - 1) / piece;                   \
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
EXTREME(float16, uint16_t, int32_t, SHORT, INT32_MIN, INT32_MAX)
EXTREME(bfloat16, uint16_t, int32_t, SHORTER, INT32_MIN, INT32_MAX)
EXTREME_OF_FLOATS(greatest_float32, float, Floats, Words, int32_t, SINGLE, INT32_MAX, >)
EXTREME_OF_FLOATS(least_float32, float, Floats, Words, int32_t, SINGLE, INT32_MIN, <)
EXTREME_OF_FLOATS(greatest_float64, double, Doubles, LongWords, int64_t, DOUBLE, INT64_MAX, >)
EXTREME_OF_FLOATS(least_float64, double, Doubles, LongWords, int64_t, DOUBLE, INT64_MIN, <)
EXTREME_OF_ROWS(float32, int32_t, int32_t)
EXTREME_OF_ROWS(float64, int64_t, int64_t)

void eshkol_order_extreme(void *context, int64_t begin, int64_t end)
{
    static void (*const rows[])(const EshkolExtreme *, int64_t, int64_t) = {
        rows_int8, rows_int16, rows_int32, rows_int64, rows_uint8, rows_uint16, rows_uint32, rows_uint64,
        rows_float16, rows_bfloat16, rows_float32, rows_float64,
    };
    const EshkolExtreme *extreme = context;
    rows[extreme->type](extreme, begin, end);
}
