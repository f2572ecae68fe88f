/* Keys sorted by dividing them (Hoare, 1961), a vector at a time: lanes below a pivot are pushed together where they
   are, the others into spare memory, from which they come back behind them. What fits into a network is left to it. Of
   equal keys none can be told from another. Whoever includes this file says what keys are:

   NAME(x)                      names for this width
   WORD, LANES, MASK            a key, how many a vector has, and a bit for each lane
   LOAD, STORE, SPLAT           vectors of them
   BELOW(x, y)                  the lanes in which x is less than y, unsigned
   PUSHED(mask, x)              those lanes side by side, first
   SAVED(to, mask, x)           the same, written to memory, and no more than these */

#define SAMPLED 15 /* keys, whose middle is the pivot of many */
#define ROUNDS 4   /* vectors that are read at once */

/* The middle of some keys, from all over. */
static WORD NAME(pivot)(const WORD *keys, int64_t count)
{
    WORD few[SAMPLED];
    for (int64_t k = 0; k < SAMPLED; k++) {
        const WORD key = keys[k * (count - 1) / (SAMPLED - 1)];
        int64_t at = k;
        for (; at > 0 && key < few[at - 1]; at--)
            few[at] = few[at - 1];
        few[at] = key;
    }
    return few[SAMPLED / 2];
}

/* How many keys are less than a pivot; they come first, then all others. */
static int64_t NAME(divided)(WORD *keys, WORD *spare, int64_t count, WORD pivot)
{
    const __m512i middle = SPLAT(pivot);
    int64_t low = 0, high = 0, i = 0;
    for (; i + ROUNDS * LANES <= count; i += ROUNDS * LANES) {
        __m512i read[ROUNDS];
        for (int k = 0; k < ROUNDS; k++)
            read[k] = LOAD(keys + i + k * LANES);
        for (int k = 0; k < ROUNDS; k++) { /* whole vectors: what is too much is read already, or written over later */
            const MASK mask = BELOW(read[k], middle);
            STORE(keys + low, PUSHED(mask, read[k]));
            STORE(spare + high, PUSHED((MASK)~mask, read[k]));
            const int below = __builtin_popcount(mask);
            low += below;
            high += LANES - below;
        }
    }
    for (; i < count; i += LANES) {
        const MASK there = count - i < LANES ? (MASK)((1u << (count - i)) - 1) : (MASK)-1;
        const __m512i read = LOAD_SOME(there, keys + i);
        const MASK mask = BELOW(read, middle) & there, rest = (MASK)~mask & there;
        SAVED(keys + low, mask, read);
        SAVED(spare + high, rest, read);
        low += __builtin_popcount(mask);
        high += __builtin_popcount(rest);
    }
    memcpy(keys + low, spare, (size_t)high * sizeof *keys);
    return low;
}

/* Keys in order, with as much spare memory. Returns 0 where they are hardly divided again and again: then they are
   the same keys still, in some order. */
static int NAME(quick)(WORD *keys, WORD *spare, int64_t count, int rounds)
{
    while (count > MOST_KEYS) {
        if (rounds-- == 0)
            return 0;
        const WORD pivot = NAME(pivot)(keys, count);
        int64_t low = NAME(divided)(keys, spare, count, pivot);
        if (low == 0) { /* it is the least: those that are equal to it are where they belong */
            if (pivot == (WORD)-1)
                return 1;
            low = NAME(divided)(keys, spare, count, pivot + 1);
        } else if (!NAME(quick)(keys, spare, low, rounds))
            return 0;
        keys += low;
        count -= low;
    }
    if (count > 1)
        NAME(network)(keys, count);
    return 1;
}

#undef SAMPLED
#undef ROUNDS
#undef NAME
#undef WORD
#undef LANES
#undef MASK
#undef LOAD_SOME
#undef SPLAT
#undef BELOW
#undef PUSHED
#undef SAVED
