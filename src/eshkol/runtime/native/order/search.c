/* See search.h. */
#include "search.h"

#include <stddef.h>
#include <string.h>

#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) /* not for who looks for faults */
#pragma GCC optimize("O3") /* loops over numbers become vectors */
#endif

#define AT_ONCE 8    /* values that are searched for side by side, so that one does not wait for another's memory */
#define EVEN 4096    /* most boundaries that are looked at to find out whether they lie evenly */

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
