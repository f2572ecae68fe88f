/* Random rows of every kind and width, put in order by rows.h for every kind of processor that this one is, and
   compared with a plain stable sort; searches of search.c, compared with plain ones; for sanitizers, which see reads
   and writes beyond the arrays, all of which are allocated to size. */
#include "order/order.h"
#include "order/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "held.h"
#include "scratch.h"

static uint64_t state = 88172645463325252u;

static uint64_t drawn(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint64_t element(const EshkolOrder *order, const void *row, int64_t place)
{
    uint64_t found = 0;
    memcpy(&found, (const char *)row + place * order->size, (size_t)order->size);
    return found;
}

/* Whether one element belongs before another, by the definition. */
static int before(const EshkolOrder *order, uint64_t one, uint64_t other)
{
    const int bits = (int)order->size * 8;
    const uint64_t top = (uint64_t)1 << (bits - 1), rest = top - 1;
    if (order->kind == ESHKOL_ORDER_UNSIGNED)
        return order->descending ? one > other : one < other;
    if (order->kind == ESHKOL_ORDER_SIGNED)
        return order->descending ? (one ^ top) > (other ^ top) : (one ^ top) < (other ^ top);
    const int nan = (one & rest) > order->infinity, other_nan = (other & rest) > order->infinity;
    if (nan || other_nan)
        return order->descending ? nan && !other_nan : other_nan && !nan;
    const int64_t a = one & top ? -(int64_t)(one & rest) : (int64_t)one;
    const int64_t b = other & top ? -(int64_t)(other & rest) : (int64_t)other;
    return order->descending ? a > b : a < b;
}

/* The places of a row in order, by merging halves. */
static void sorted(const EshkolOrder *order, const char *row, int64_t *places, int64_t *spare, int64_t count)
{
    if (count < 2)
        return;
    const int64_t half = count / 2;
    sorted(order, row, places, spare, half);
    sorted(order, row, places + half, spare, count - half);
    for (int64_t i = 0, a = 0, b = half; i < count; i++) {
        const int second = a == half
            || (b < count && before(order, element(order, row, places[b]), element(order, row, places[a])));
        spare[i] = second ? places[b++] : places[a++];
    }
    memcpy(places, spare, (size_t)count * sizeof *places);
}

static void check(const EshkolOrder *order, int64_t rows)
{
    int64_t *places = malloc((size_t)order->length * sizeof *places), *spare = malloc((size_t)order->length * 8);
    for (int64_t row = 0; row < rows; row++) {
        const char *elements = (const char *)order->rows + row * order->length * order->size;
        for (int64_t i = 0; i < order->length; i++)
            places[i] = i;
        sorted(order, elements, places, spare, order->length);
        int64_t at = row * order->kept;
        for (int64_t k = 0; k < order->range_count; k++)
            for (int64_t rank = order->ranges[k].begin; rank < order->ranges[k].end; rank++, at++)
                if ((order->wants & ESHKOL_ORDER_PLACES && order->places[at] != places[rank])
                    || (order->wants & ESHKOL_ORDER_VALUES
                        && element(order, order->values, at) != element(order, elements, places[rank]))) {
                    fprintf(stderr, "wrong: kind %d, size %d, row %d, rank %d of %d\n", (int)order->kind,
                            (int)order->size, (int)row, (int)rank, (int)order->length);
                    exit(1);
                }
    }
    free(places);
    free(spare);
}

static void try_order(eshkol_scheduler *const *pool, int round, eshkol_body sort)
{
    const uint64_t infinities[] = {0, 0, 0x7C00, 0, 0x7F800000, 0, 0, 0, 0x7FF0000000000000};
    EshkolOrder *order = calloc(1, sizeof *order + 3 * sizeof *order->ranges);
    order->fault = ESHKOL_ORDER_FINE;
    order->pool = pool;
    order->kind = (int64_t)drawn(3);
    order->descending = (int64_t)drawn(2);
    order->wants = 1 + (int64_t)drawn(3);
    do
        order->size = 1 << drawn(4);
    while (order->kind == ESHKOL_ORDER_FLOAT && order->size == 1);
    const int64_t rows = 1 + (int64_t)drawn(round % 3 == 0 && round % 8 ? 40 : 3); /* short ones go side by side */
    order->infinity = order->kind == ESHKOL_ORDER_FLOAT ? infinities[order->size] : 0;
    order->length = 1 + (int64_t)drawn(round % 300 == 0 ? 200000 : round % 8 ? 40 : 3000);
    int64_t from = 0;
    if (drawn(3) == 0) {
        order->range_count = 1;
        order->ranges[0] = (EshkolRanks){0, order->length};
    } else
        while (order->range_count < 3 && from < order->length) {
            const int64_t begin = from + (drawn(2) ? (int64_t)drawn((uint64_t)(order->length - from)) : 0);
            from = begin + 1 + (int64_t)drawn((uint64_t)(order->length - begin) / (1 + drawn(30)) + 1);
            from = from < order->length ? from : order->length;
            order->ranges[order->range_count++] = (EshkolRanks){begin, from++};
        }
    for (int64_t k = 0; k < order->range_count; k++)
        order->kept += order->ranges[k].end - order->ranges[k].begin;
    const uint64_t special[] = {0, 1, order->infinity, order->infinity + 1, ~(uint64_t)0,
                                (uint64_t)1 << (order->size * 8 - 1), ~((uint64_t)1 << (order->size * 8 - 1))};
    const uint64_t plain = drawn(4), narrow = drawn(2) ? ~(uint64_t)0 : 500;
    char *elements = malloc((size_t)(rows * order->length * order->size));
    for (int64_t i = 0; i < rows * order->length; i++) {
        const uint64_t bits = drawn(3) >= plain ? special[drawn(7)] : drawn(narrow) + 5;
        memcpy(elements + i * order->size, &bits, (size_t)order->size);
    }
    order->rows = elements;
    order->values = order->wants & ESHKOL_ORDER_VALUES ? malloc((size_t)(rows * order->kept * order->size)) : NULL;
    order->places = order->wants & ESHKOL_ORDER_PLACES ? malloc((size_t)(rows * order->kept) * 8) : NULL;
    sort(order, 0, rows);
    if (order->fault != ESHKOL_ORDER_FINE)
        exit(2);
    check(order, rows);
    free(elements);
    free(order->values);
    free(order->places);
    free(order);
}

/* Places of extremes and of values, of floats: of two rows, by definition. */
static void try_search(eshkol_scheduler *const *pool, int round)
{
    const int64_t length = 1 + (int64_t)drawn(round % 200 == 0 ? 300000 : 300), count = 1 + (int64_t)drawn(700);
    float *rows = malloc((size_t)(2 * length) * sizeof *rows), *values = malloc((size_t)(2 * count) * sizeof *values);
    int64_t places[2], *out = malloc((size_t)(2 * count) * sizeof *out);
    for (int64_t i = 0; i < 2 * length; i++) {
        const uint32_t bits = drawn(30) ? (uint32_t)drawn(1000) : (uint32_t)drawn(~(uint64_t)0);
        memcpy(&rows[i], &bits, sizeof bits);
    }
    for (int least = 0; least < 2; least++) {
        EshkolExtreme extreme = {UINT64_MAX, 0, places, rows, pool, length, ESHKOL_SEARCH_FLOAT32, least};
        eshkol_order_extreme(&extreme, 0, 2);
        for (int64_t row = 0; row < 2; row++) {
            const float *x = rows + row * length;
            int64_t best = 0;
            for (int64_t i = 1; i < length; i++)
                if (x[best] == x[best] && (x[i] != x[i] || (least ? x[i] < x[best] : x[i] > x[best])))
                    best = i;
            if (places[row] != best)
                exit(3);
        }
    }
    const int even = drawn(2) != 0;
    for (int64_t i = 0; i < 2 * length; i++) /* rising, with equal ones; or evenly */
        rows[i] = (float)(i % length) * 0.37f - (even ? 3.0f : (float)(i % length) / 3 * 0.1f);
    for (int64_t i = 0; i < 2 * count; i++)
        values[i] = drawn(20) ? rows[drawn((uint64_t)length)] + (float)drawn(3) - 1 : 0.0f / (float)drawn(2);
    for (int right = 0; right < 2; right++) {
        EshkolSearch search = {UINT64_MAX, 0, out, rows, values, length, count, ESHKOL_SEARCH_FLOAT32, right};
        const int64_t cut = (int64_t)drawn((uint64_t)(2 * count));
        eshkol_order_search(&search, 0, cut);
        eshkol_order_search(&search, cut, 2 * count);
        for (int64_t i = 0; i < 2 * count; i++) {
            const float *x = rows + i / count * length, v = values[i];
            int64_t low = 0;
            while (low < length && (v != v || (right ? x[low] <= v : x[low] < v)))
                low++;
            if (out[i] != low)
                exit(4);
        }
    }
    free(rows);
    free(values);
    free(out);
}

int main(void)
{
    eshkol_scheduler_free(eshkol_scheduler_new(2)); /* the C library keeps something of threads that have ended */
    const size_t before_all = __sanitizer_get_current_allocated_bytes();
    eshkol_scheduler *pool = eshkol_scheduler_new(2);
    eshkol_body kinds[] = {eshkol_order_rows_plain, eshkol_order_rows, eshkol_order_rows};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        kinds[1] = eshkol_order_rows_avx2;
    if (__builtin_cpu_supports("avx512f"))
        kinds[2] = eshkol_order_rows_avx512;
#endif
    for (int round = 0; round < 1500; round++)
        try_order(&pool, round, kinds[(round + round / 300) % 3]);
    for (int round = 0; round < 300; round++)
        try_search(&pool, round);
    eshkol_scheduler_free(pool);
    eshkol_scratch_clear();
    return finished("sorts", before_all);
}
