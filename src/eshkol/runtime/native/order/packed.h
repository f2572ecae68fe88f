/* Whole rows of 8-byte numbers with their places, in items of 8 bytes: the first bits of a key, counted from the least,
   above the place. They are half of what a key and its place take, so twice as many are moved at a time. Numbers that
   nevertheless agree in all bits there is room for are put in order by whole keys in the end. */
#ifndef ESHKOL_ORDER_PACKED_H
#define ESHKOL_ORDER_PACKED_H

#define SHORT 64 /* numbers of one such run that need no memory of their own */

/* How keys lie in items, and a walk over them. */
typedef struct {
    wide_Walk walk;
    Coding coding;
    uint64_t least;
    int dropped, place; /* bits of a key that are left out, and of a place */
} Packing;

static inline uint64_t packed_place(const Packing *packing, uint64_t item)
{
    return item & (((uint64_t)1 << packing->place) - 1);
}

static inline uint64_t packed(const Packing *packing, uint64_t key, int64_t place)
{
    return (key - packing->least) >> packing->dropped << packing->place | (uint64_t)place;
}

static void pack(void *context, int64_t begin, int64_t end)
{
    const Packing packing = *(const Packing *)context;
    const int64_t last = wide_end(&packing.walk, end - 1);
    for (int64_t i = begin * packing.walk.piece; i < last; i++)
        packing.walk.items[i] = packed(&packing, packing.walk.items[i], i);
}

static uint64_t whole_key(const Packing *packing, uint64_t item)
{
    uint64_t key;
    Seen seen = seen_nothing();
    wide_keys(packing->walk.row, (int64_t)packed_place(packing, item), 1, &key, &seen);
    return key;
}

/* Items that agree in the bits of their keys are in the order of their places; here they are put in that of their keys,
   which they mostly are in. */
static void settle_run(const Packing *packing, uint64_t *items, int64_t count)
{
    Placed few[2 * SHORT], *run = few;
    if (count > SHORT && (run = malloc(2 * (size_t)count * sizeof *run)) == NULL) {
        out_of_memory(packing->walk.row->order);
        return;
    }
    int sorted = 1;
    for (int64_t i = 0; i < count; i++) {
        run[i] = (Placed){whole_key(packing, items[i]), (int64_t)items[i]};
        sorted &= i == 0 || run[i - 1].key <= run[i].key;
    }
    if (!sorted) {
        const Placed *in_order = wide_placed_merged(run, run + count, count);
        for (int64_t i = 0; i < count; i++)
            items[i] = (uint64_t)in_order[i].place;
    }
    if (run != few)
        free(run);
}

/* The runs that begin among the first `begins` of so many items. */
static void settle_packed(const Packing *packing, uint64_t *items, int64_t begins, int64_t count)
{
    for (int64_t i = 0, next; i < begins; i = next) {
        for (next = i + 1; next < count && items[i] >> packing->place == items[next] >> packing->place;)
            next++;
        if (next - i > 1)
            settle_run(packing, items + i, next - i);
    }
}

static void settle_pieces(void *context, int64_t begin, int64_t end)
{
    const Packing *packing = context;
    uint64_t *items = packing->walk.items;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t last = wide_end(&packing->walk, piece);
        int64_t i = piece * packing->walk.piece;
        while (i > 0 && i < last && items[i - 1] >> packing->place == items[i] >> packing->place)
            i++;
        settle_packed(packing, items + i, last - i, packing->walk.count - i);
    }
}

/* Items of ranks from `first` on become results. */
static void write_packed(const Packing *given, const uint64_t *items, int64_t first, int64_t count)
{
    const Packing packing = *given;
    const Row *row = packing.walk.row;
    int64_t *places = row->places + first;
    for (int64_t i = 0; i < count; i++)
        places[i] = (int64_t)packed_place(&packing, items[i]);
    for (int64_t i = 0; i < count && row->values != NULL; i++) {
        const uint64_t key = (items[i] >> packing.place) + packing.least;
        const int known = !packing.dropped && !is_mixed(&packing.coding, key);
        ((uint64_t *)row->values)[first + i] =
            known ? wide_decoded(&packing.coding, key) : ((const uint64_t *)row->elements)[places[i]];
    }
}

static void write_packed_pieces(void *context, int64_t begin, int64_t end)
{
    const Packing *packing = context;
    const int64_t first = begin * packing->walk.piece;
    write_packed(packing, packing->walk.items + first, first, wide_end(&packing->walk, end - 1) - first);
}

#include "buckets.h"

/* Whether a row is of the kind that this is for. */
static int is_packed(const EshkolOrder *order)
{
    return order->size == 8 && order->length > MERGED && order->range_count == 1 && order->kept == order->length &&
           (order->wants & ESHKOL_ORDER_PLACES);
}

static void packed_one_row(const Row *row, const Space *space, Pieces pieces)
{
    Packing packing = {
        .walk = {.row = row, .items = space->items, .spare = space->spare, .count = row->order->length,
                 .piece = pieces.size, .tallies = space->tallies, .seen = space->seen},
        .coding = coding_of(row->order), .place = bit_length((uint64_t)row->order->length - 1),
    };
    Seen seen = seen_nothing();
    each_piece(pieces, wide_fill, &packing.walk);
    for (int64_t piece = 0; piece < pieces.count; piece++)
        see(&seen, &space->seen[piece]);
    packing.least = seen.least;
    const int bits = bit_length(seen.greatest - seen.least);
    packing.dropped = bits + packing.place > 64 ? bits + packing.place - 64 : 0;
    packing.walk.base = seen.least;
    if (is_divided(&packing.walk, bits)) {
        by_buckets(&packing, pieces);
        return;
    }
    each_piece(pieces, pack, &packing);
    const uint64_t most = (seen.greatest - seen.least) >> packing.dropped;
    const Seen packed = {0, most << packing.place | (((uint64_t)1 << packing.place) - 1), 0};
    wide_in_order(&packing.walk, pieces, &packed, packing.place);
    if (packing.dropped)
        each_piece(pieces, settle_pieces, &packing);
    each_piece(pieces, write_packed_pieces, &packing);
}

#endif
