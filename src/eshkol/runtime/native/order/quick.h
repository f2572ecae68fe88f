/* Keys sorted by dividing them (Hoare, 1961), a vector at a time: lanes below a pivot are pushed together where they
   are, the others into spare memory, from which they come back behind them. What fits into a network is left to it. Of
   equal keys none can be told from another. Whoever includes this file says what keys are:

   NAME(x)                      names for this width
   WORD, V, LANES, MASK         a key, a vector as network.h has it, how many it has, and a bit for each lane
   LOAD, STORE, SPLAT           vectors of them
   BELOW(x, y)                  the lanes in which x is less than y, unsigned
   PUSHED(mask, x)              those lanes side by side, first
   SAVED(to, mask, x)           the same, written to memory, and no more than these */

#define ROUNDS 4 /* vectors that are read at once */
#define MIDDLE(a, b, c) NAME(greater)(NAME(less)(a, b), NAME(less)(NAME(greater)(a, b), c))

static inline WORD NAME(less)(WORD a, WORD b) { return a < b ? a : b; }
static inline WORD NAME(greater)(WORD a, WORD b) { return a < b ? b : a; }

/* About the middle of some keys, from all over: middles of eight at a time, in each lane, and of these. */
static WORD NAME(pivot)(const WORD *keys, int64_t count)
{
    union {
        V rows[8];
        WORD words[8 * LANES];
    } some;
    const WORD top = (WORD)1 << (8 * sizeof(WORD) - 1);
    for (int64_t k = 0; k < 8; k++)
        STORE(some.rows + k, LOAD(keys + k * (count - LANES) / 7) ^ SPLAT(top));
    NAME(eight)(some.rows);
    const WORD *m = some.words + 4 * LANES;
#define SIGNED(K) (m[K] ^ top)
    const WORD found = MIDDLE(MIDDLE(SIGNED(0), SIGNED(1), SIGNED(2)), MIDDLE(SIGNED(3), SIGNED(4), SIGNED(5)),
                              LANES > 8 ? MIDDLE(SIGNED(6), SIGNED(7), SIGNED(8 % LANES)) : SIGNED(6));
#undef SIGNED
    return found;
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

#undef ROUNDS
#undef MIDDLE
#undef V
#undef NAME
#undef WORD
#undef LANES
#undef MASK
#undef LOAD_SOME
#undef SPLAT
#undef BELOW
#undef PUSHED
#undef SAVED
