/* Keys that are spread evenly, as random numbers are, among those of packed.h: one digit divides them into buckets of
   so few that these are sorted by the next bits of their keys alone, which have room in 4 bytes, above a number. Those
   nearly always tell them apart; where they do not, items are put in order by inserting. */
#ifndef ESHKOL_ORDER_BUCKETS_H
#define ESHKOL_ORDER_BUCKETS_H

#define LEAST_DIVIDED 1024
#define IN_BUCKET 52 /* items, more or less: then it is rarely more than 64, which lie well in vectors */
#define NUMBER 8     /* bits of a number of an item there */
#define TOLD_BY (32 - NUMBER)

/* Whether a row of keys is of that kind; if it is, the digit is chosen. */
static int is_divided(wide_Walk *walk, int bits)
{
    const int enough = bit_length((uint64_t)(walk->count - 1) / IN_BUCKET);
    walk->width = enough < LARGE_DIGIT ? enough : LARGE_DIGIT;
    walk->shift = bits - walk->width;
    return walk->count >= LEAST_DIVIDED && walk->count >> walk->width <= 2 * IN_BUCKET && walk->shift >= TOLD_BY &&
           wide_is_even(walk, bits, walk->shift - TOLD_BY);
}

static void spread_packed(void *context, int64_t begin, int64_t end)
{
    const Packing packing = *(const Packing *)context;
    const wide_Walk walk = packing.walk;
    for (int64_t piece = begin; piece < end; piece++) {
        uint32_t *tallies = walk.tallies + (piece << walk.width);
        const int64_t last = wide_end(&walk, piece);
        for (int64_t i = piece * walk.piece; i < last; i++)
            walk.spare[tallies[wide_digit(&walk, walk.items[i])]++] = packed(&packing, walk.items[i], i);
    }
}

/* Up to MOST_KEYS items, put in order elsewhere. */
static void sort_bucket(const Packing *packing, const uint64_t *items, uint64_t *sorted, int64_t count)
{
    uint32_t keys[MOST_KEYS];
    const int shift = packing->walk.shift - packing->dropped + packing->place - TOLD_BY;
    for (int64_t i = 0; i < count; i++)
        keys[i] = (uint32_t)(items[i] >> shift) << NUMBER | (uint32_t)i;
    narrow_straight(keys, count);
    for (int64_t i = 0; i < count; i++)
        sorted[i] = items[keys[i] & ((1 << NUMBER) - 1)];
    uint64_t wrong = 0, same = 0;
    for (int64_t i = 1; i < count; i++) {
        wrong |= sorted[i] < sorted[i - 1];
        same |= sorted[i] >> packing->place == sorted[i - 1] >> packing->place;
    }
    if (wrong)
        wide_insert(sorted, count);
    if ((wrong | same) && packing->dropped)
        settle_packed(packing, sorted, count, count);
}

static void sort_buckets(void *context, int64_t begin, int64_t end)
{
    const Packing *packing = context;
    const wide_Walk *walk = &packing->walk;
    const int64_t pieces = (walk->count + walk->piece - 1) / walk->piece;
    const int64_t last = (end << walk->width) / pieces;
    uint64_t few[MOST_KEYS];
    for (int64_t bucket = (begin << walk->width) / pieces; bucket < last; bucket++) {
        const int64_t first = bucket == 0 ? 0 : walk->tallies[bucket - 1], count = walk->tallies[bucket] - first;
        uint64_t *items = walk->items + first, *sorted = few;
        if (count <= MOST_KEYS)
            sort_bucket(packing, items, few, count);
        else {
            sorted = wide_merged(items, walk->spare + first, count);
            settle_packed(packing, sorted, count, count);
        }
        write_packed(packing, sorted, first, count);
    }
}

static void by_buckets(Packing *packing, Pieces pieces)
{
    wide_Walk *walk = &packing->walk;
    each_piece(pieces, wide_tally, walk);
    wide_places(walk, pieces.count);
    each_piece(pieces, spread_packed, packing);
    uint64_t *spread = walk->spare;
    walk->spare = walk->items;
    walk->items = spread;
    walk->tallies += (pieces.count - 1) << walk->width; /* each says now where a bucket ends */
    each_piece(pieces, sort_buckets, packing);
}

#endif
