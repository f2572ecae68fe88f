/* See sorting.h. A number becomes a key, an unsigned integer of the same order. A key of up to 32 bits and a place make
   one integer of 64, so that no two items are equal, and any sort of integers keeps the order of equal numbers. */
#include "sorting.h"

#include <stdlib.h>

#define AT_A_TIME 256 /* keys that are made at a time */

static const char *row_of(const EshkolSort *sort, int64_t row)
{
    return (const char *)sort->rows + row * sort->length * sort->size;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* Loops without branches: compilers make vectors of them. */
#define KEYS(ELEMENT, BITS)                                                                                       \
    static void keys_##BITS(const EshkolSort *sort, const void *row, int64_t from, int64_t count, uint64_t *keys) \
    {                                                                                                             \
        const ELEMENT *elements = (const ELEMENT *)row + from;                                                    \
        const uint64_t top = (uint64_t)1 << (BITS - 1), ones = top | (top - 1);                                   \
        const uint64_t turn = sort->descending ? ones : 0, infinity = sort->infinity;                             \
        const uint64_t flip = (sort->kind == ESHKOL_SORT_SIGNED ? top : 0) ^ turn;                                \
        if (sort->kind != ESHKOL_SORT_FLOAT) {                                                                    \
            for (int64_t i = 0; i < count; i++)                                                                   \
                keys[i] = elements[i] ^ flip;                                                                     \
            return;                                                                                               \
        }                                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                                     \
            uint64_t bits = elements[i], magnitude = bits & (top - 1);                                            \
            uint64_t key = bits & top ? ones - bits : bits | top;                                                 \
            key = magnitude == 0 ? top : key;                                                                     \
            key = magnitude > infinity ? ones : key;                                                              \
            keys[i] = key ^ turn;                                                                                 \
        }                                                                                                         \
    }

KEYS(uint8_t, 8)
KEYS(uint16_t, 16)
KEYS(uint32_t, 32)
KEYS(uint64_t, 64)

typedef void Keys(const EshkolSort *sort, const void *row, int64_t from, int64_t count, uint64_t *keys);

static Keys *keys_of(const EshkolSort *sort)
{
    return sort->size == 8 ? keys_64 : sort->size == 4 ? keys_32 : sort->size == 2 ? keys_16 : keys_8;
}

void eshkol_sort_items(void *context, int64_t begin, int64_t end)
{
    const EshkolSort *sort = context;
    Keys *keys = keys_of(sort);
    for (int64_t row = begin; row < end; row++) {
        uint64_t *items = sort->items + row * sort->length;
        keys(sort, row_of(sort, row), 0, sort->length, items);
        for (int64_t i = 0; sort->size < 8 && i < sort->length; i++)
            items[i] = items[i] << 32 | (uint64_t)i;
    }
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The elements at the places of a row's results. */
static void gather(const EshkolSort *sort, int64_t row)
{
    const void *elements = row_of(sort, row);
    const int64_t *places = sort->places + row * sort->kept;
    void *values = (char *)sort->values + row * sort->kept * sort->size;
#define GATHER(TYPE)                              \
    for (int64_t i = 0; i < sort->kept; i++)      \
        ((TYPE *)values)[i] = ((const TYPE *)elements)[places[i]]
    if (sort->size == 8)
        GATHER(uint64_t);
    else if (sort->size == 4)
        GATHER(uint32_t);
    else if (sort->size == 2)
        GATHER(uint16_t);
    else
        GATHER(uint8_t);
}

/* An element is read from its key: to look it up at its place would take longer. Zeros and NaN are told apart there. */
#define RESULTS(ELEMENT, BITS)                                                                                    \
    static void results_##BITS(const EshkolSort *sort, int64_t row)                                               \
    {                                                                                                             \
        const uint64_t *items = sort->items + row * sort->length;                                                 \
        const ELEMENT *elements = (const ELEMENT *)row_of(sort, row);                                             \
        int64_t *places = sort->places + row * sort->length;                                                      \
        ELEMENT *values = (ELEMENT *)sort->values + row * sort->length;                                           \
        const uint64_t top = (uint64_t)1 << (BITS - 1), ones = top | (top - 1);                                   \
        const uint64_t turn = sort->descending ? ones : 0;                                                        \
        const uint64_t flip = (sort->kind == ESHKOL_SORT_SIGNED ? top : 0) ^ turn;                                \
        const int is_float = sort->kind == ESHKOL_SORT_FLOAT;                                                     \
        for (int64_t i = 0; i < sort->length; i++) {                                                              \
            const int64_t place = (int64_t)(items[i] & 0xFFFFFFFF);                                               \
            const uint64_t key = (items[i] >> 32) ^ turn;                                                         \
            uint64_t bits = is_float ? (key & top ? key ^ top : ones - key) : key ^ turn ^ flip;                  \
            if (is_float && (key == top || key == ones))                                                          \
                bits = elements[place];                                                                           \
            places[i] = place;                                                                                    \
            values[i] = (ELEMENT)bits;                                                                            \
        }                                                                                                         \
    }

RESULTS(uint8_t, 8)
RESULTS(uint16_t, 16)
RESULTS(uint32_t, 32)

void eshkol_sort_results(void *context, int64_t begin, int64_t end)
{
    const EshkolSort *sort = context;
    for (int64_t row = begin; row < end; row++)
        (sort->size == 4 ? results_32 : sort->size == 2 ? results_16 : results_8)(sort, row);
}

static int by_place(const void *one, const void *other)
{
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

void eshkol_sort_settled(void *context, int64_t begin, int64_t end)
{
    const EshkolSort *sort = context;
    for (int64_t row = begin; row < end; row++) {
        const uint64_t *keys = sort->items + row * sort->length;
        int64_t *places = sort->places + row * sort->kept;
        for (int64_t i = 0, next; i < sort->kept; i = next) {
            for (next = i + 1; next < sort->kept && keys[places[next]] == keys[places[i]]; next++)
                ;
            if (next - i > 1)
                qsort(places + i, (size_t)(next - i), sizeof *places, by_place);
        }
        gather(sort, row);
    }
}

/* --- runs of one row ---------------------------------------------------------------------------------------------- */

/* How many of the first `count` items of two runs together come from the left one. */
static int64_t from_left(const uint64_t *left, int64_t lefts, const uint64_t *right, int64_t rights, int64_t count)
{
    int64_t low = count > rights ? count - rights : 0, high = count < lefts ? count : lefts;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (left[middle] < right[count - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void eshkol_sort_merged(void *context, int64_t begin, int64_t end)
{
    const EshkolSort *sort = context;
    int64_t from = begin * sort->piece, until = end * sort->piece;
    until = until < sort->length ? until : sort->length;
    while (from < until) { /* in one pair of runs after another */
        const int64_t start = from / (2 * sort->run) * (2 * sort->run), left = sort->length - start;
        const int64_t lefts = left < sort->run ? left : sort->run;
        const int64_t rights = left - lefts < sort->run ? left - lefts : sort->run;
        const int64_t last = start + lefts + rights < until ? start + lefts + rights : until;
        const uint64_t *one = sort->items + start, *other = one + lefts;
        int64_t a = from_left(one, lefts, other, rights, from - start), b = from - start - a;
        for (; from < last && a < lefts && b < rights; from++) {
            const int first = one[a] < other[b];
            sort->merged[from] = first ? one[a] : other[b];
            a += first;
            b += !first;
        }
        while (from < last)
            sort->merged[from++] = a < lefts ? one[a++] : other[b++];
    }
}

/* --- the first few ------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t key;
    int64_t place;
} Ranked;

static int by_rank(const void *one, const void *other)
{
    const Ranked *a = one, *b = other;
    return a->key != b->key ? (a->key > b->key ? 1 : -1) : (a->place > b->place) - (a->place < b->place);
}

/* Let the last in order be first in a heap again, after its first became another. */
static void sink(Ranked *heap, int64_t count)
{
    const Ranked item = heap[0];
    int64_t at = 0;
    for (int64_t below = 1; below < count; below = 2 * at + 1) {
        below += below + 1 < count && by_rank(&heap[below], &heap[below + 1]) < 0;
        if (by_rank(&heap[below], &item) < 0)
            break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = item;
}

/* A heap holds the first items so far; what does not come before its last is passed over quickly. */
static void first_of_row(const EshkolSort *sort, int64_t row, Ranked *heap)
{
    const char *elements = row_of(sort, row);
    const int64_t kept = sort->kept;
    Keys *make = keys_of(sort);
    uint64_t keys[AT_A_TIME];
    for (int64_t from = 0; from < sort->length; from += AT_A_TIME) {
        const int64_t left = sort->length - from, now = left < AT_A_TIME ? left : AT_A_TIME;
        int64_t i = 0;
        make(sort, elements, from, now, keys);
        for (; i < now && from + i < kept; i++) {
            heap[from + i] = (Ranked){keys[i], from + i};
            if (from + i == kept - 1) { /* backwards in order it is a heap */
                qsort(heap, (size_t)kept, sizeof *heap, by_rank);
                for (int64_t one = 0, other = kept - 1; one < other; one++, other--) {
                    const Ranked item = heap[one];
                    heap[one] = heap[other];
                    heap[other] = item;
                }
            }
        }
        if (i == now)
            continue;
        int any = 0;
        for (int64_t j = i; j < now; j++)
            any |= keys[j] < heap[0].key;
        for (; any && i < now; i++)
            if (keys[i] < heap[0].key) { /* an equal one stands after those in the heap */
                heap[0] = (Ranked){keys[i], from + i};
                sink(heap, kept);
            }
    }
    qsort(heap, (size_t)kept, sizeof *heap, by_rank);
    for (int64_t i = 0; i < kept; i++)
        sort->places[row * kept + i] = heap[i].place;
    gather(sort, row);
}

void eshkol_sort_first(void *context, int64_t begin, int64_t end)
{
    EshkolSort *sort = context;
    Ranked *heap = malloc((size_t)sort->kept * sizeof *heap);
    if (heap == NULL) {
        __atomic_store_n(&sort->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t row = begin; row < end; row++)
        first_of_row(sort, row, heap);
    free(heap);
}
