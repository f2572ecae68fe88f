/* Random rows of every kind and width, sorted by sorting.c and compared with a plain stable sort; for sanitizers, which
   see reads and writes beyond the arrays, all of them allocated to size. */
#include "sorting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t drawn(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint64_t element(const EshkolSort *sort, const void *row, int64_t place)
{
    uint64_t found = 0;
    memcpy(&found, (const char *)row + place * sort->size, (size_t)sort->size);
    return found;
}

/* Whether one element belongs before another, by the definition. */
static int before(const EshkolSort *sort, uint64_t one, uint64_t other)
{
    const int bits = sort->size * 8;
    const uint64_t top = (uint64_t)1 << (bits - 1), rest = top - 1;
    if (sort->kind == ESHKOL_SORT_UNSIGNED)
        return sort->descending ? one > other : one < other;
    if (sort->kind == ESHKOL_SORT_SIGNED)
        return sort->descending ? (one ^ top) > (other ^ top) : (one ^ top) < (other ^ top);
    const int nan = (one & rest) > sort->infinity, other_nan = (other & rest) > sort->infinity;
    if (nan || other_nan)
        return sort->descending ? nan && !other_nan : other_nan && !nan;
    const int64_t a = one & top ? -(int64_t)(one & rest) : (int64_t)one;
    const int64_t b = other & top ? -(int64_t)(other & rest) : (int64_t)other;
    return sort->descending ? a > b : a < b;
}

static int by_item(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static void check(const EshkolSort *sort, int64_t rows)
{
    for (int64_t row = 0; row < rows; row++) {
        const char *elements = (const char *)sort->rows + row * sort->length * sort->size;
        const char *values = (const char *)sort->values + row * sort->kept * sort->size;
        const int64_t *places = sort->places + row * sort->kept;
        int64_t *left = malloc((size_t)sort->length * sizeof *left), count = sort->length;
        for (int64_t i = 0; i < count; i++)
            left[i] = i;
        for (int64_t i = 0; i < sort->kept; i++) { /* the first of what is left that nothing belongs before */
            int64_t least = 0;
            for (int64_t j = 1; j < count; j++)
                if (before(sort, element(sort, elements, left[j]), element(sort, elements, left[least])))
                    least = j;
            if (places[i] != left[least] || element(sort, values, i) != element(sort, elements, left[least])) {
                fprintf(stderr, "wrong: kind %d, size %d, row %lld, %lld of %lld\n", sort->kind, sort->size,
                        (long long)row, (long long)i, (long long)sort->length);
                exit(1);
            }
            memmove(left + least, left + least + 1, (size_t)(--count - least) * sizeof *left);
        }
        free(left);
    }
}

static void sort_wholly(EshkolSort *sort, int64_t rows)
{
    eshkol_sort_items(sort, 0, rows);
    if (sort->size == 8) { /* in order of keys, equal ones in the wrong order */
        for (int64_t row = 0; row < rows; row++) {
            const uint64_t *keys = sort->items + row * sort->length;
            int64_t *places = sort->places + row * sort->length;
            for (int64_t i = 0; i < sort->length; i++) {
                int64_t j = i;
                for (; j > 0 && keys[i] <= keys[places[j - 1]]; j--)
                    places[j] = places[j - 1];
                places[j] = i;
            }
        }
        eshkol_sort_settled(sort, 0, rows);
        return;
    }
    if (rows == 1 && sort->length > 2) {
        sort->run = 1 + (int64_t)drawn((uint64_t)sort->length);
        sort->piece = 1 + (int64_t)drawn(9);
        sort->merged = malloc((size_t)sort->length * sizeof *sort->merged);
        for (int64_t start = 0; start < sort->length; start += sort->run) {
            const int64_t left = sort->length - start, count = left < sort->run ? left : sort->run;
            qsort(sort->items + start, (size_t)count, sizeof *sort->items, by_item);
        }
        for (; sort->run < sort->length; sort->run *= 2) {
            const int64_t pieces = (sort->length + sort->piece - 1) / sort->piece;
            const int64_t cut = (int64_t)drawn((uint64_t)pieces);
            eshkol_sort_merged(sort, 0, cut);
            eshkol_sort_merged(sort, cut, pieces);
            uint64_t *items = sort->items;
            sort->items = sort->merged;
            sort->merged = items;
        }
        eshkol_sort_results(sort, 0, 1);
        free(sort->merged);
        return;
    }
    for (int64_t row = 0; row < rows; row++)
        qsort(sort->items + row * sort->length, (size_t)sort->length, sizeof *sort->items, by_item);
    eshkol_sort_results(sort, 0, rows);
}

int main(void)
{
    const uint64_t infinities[] = {0, 0, 0x7C00, 0, 0x7F800000, 0, 0, 0, 0x7FF0000000000000};
    for (int round = 0; round < 1500; round++) {
        EshkolSort sort = {.kind = (int32_t)drawn(3), .descending = (int32_t)drawn(2)};
        do
            sort.size = 1 << drawn(4);
        while (sort.kind == ESHKOL_SORT_FLOAT && sort.size == 1);
        const int64_t rows = 1 + (int64_t)drawn(3);
        sort.infinity = sort.kind == ESHKOL_SORT_FLOAT ? infinities[sort.size] : 0;
        sort.length = 1 + (int64_t)drawn(drawn(8) ? 20 : 400);
        sort.kept = drawn(2) ? sort.length : 1 + (int64_t)drawn((uint64_t)sort.length);
        const size_t bytes = (size_t)(rows * sort.length * sort.size), kept = (size_t)(rows * sort.kept);
        const uint64_t special[] = {0, 1, sort.infinity, sort.infinity + 1, ~(uint64_t)0,
                                    (uint64_t)1 << (sort.size * 8 - 1), ~((uint64_t)1 << (sort.size * 8 - 1))};
        char *elements = malloc(bytes);
        for (int64_t i = 0; i < rows * sort.length; i++) {
            const uint64_t bits = drawn(3) ? special[drawn(7)] : drawn(~(uint64_t)0);
            memcpy(elements + i * sort.size, &bits, (size_t)sort.size);
        }
        sort.rows = elements;
        sort.values = malloc(kept * (size_t)sort.size);
        sort.places = malloc(kept * sizeof *sort.places);
        sort.items = malloc((size_t)(rows * sort.length) * sizeof *sort.items);
        if (sort.kept < sort.length || drawn(4) == 0)
            eshkol_sort_first(&sort, 0, rows);
        else
            sort_wholly(&sort, rows);
        if (sort.failed)
            return 2;
        check(&sort, rows);
        free(elements);
        free(sort.values);
        free(sort.places);
        free(sort.items);
    }
    puts("sorts: right");
    return 0;
}
