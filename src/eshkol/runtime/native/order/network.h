/* Keys sorted by a bitonic network (Batcher, 1968). They lie in rows of vectors: first each column is sorted, lane by
   lane; then columns are merged, two and two, until they are one. Between columns lanes change places, all else is
   within a lane. Whoever includes this file says what keys are:

   NAME(x)                  names for this width
   WORD, V, LANES           a key, a vector of them as signed numbers, and how many that holds
   BYTES                    of a key
   LEAST(x, y), GREATEST    of each lane */

#define EXCHANGE(x, y)                \
    {                                 \
        const V least = LEAST(x, y);  \
        y = GREATEST(x, y);           \
        x = least;                    \
    }

#define READ(rows) \
    V a = rows[0], b = rows[1], c = rows[2], d = rows[3], e = rows[4], f = rows[5], g = rows[6], h = rows[7]
#define WRITE(rows) \
    rows[0] = a, rows[1] = b, rows[2] = c, rows[3] = d, rows[4] = e, rows[5] = f, rows[6] = g, rows[7] = h

/* Eight rows: columns in any order become sorted ones. */
static inline void NAME(eight)(V *rows)
{
    READ(rows);
    EXCHANGE(a, b) EXCHANGE(c, d) EXCHANGE(e, f) EXCHANGE(g, h)
    EXCHANGE(a, c) EXCHANGE(b, d) EXCHANGE(e, g) EXCHANGE(f, h)
    EXCHANGE(b, c) EXCHANGE(f, g)
    EXCHANGE(a, e) EXCHANGE(b, f) EXCHANGE(c, g) EXCHANGE(d, h)
    EXCHANGE(c, e) EXCHANGE(d, f)
    EXCHANGE(b, c) EXCHANGE(d, e) EXCHANGE(f, g)
    WRITE(rows);
}

/* Columns of bitonic keys become sorted ones: so many rows, a power of 2 from 8 on. */
static inline void NAME(fall)(V *rows, int64_t count)
{
    if (count > MOST_KEYS / LANES) /* said for the compiler, which would warn of rows that there are not */
        __builtin_unreachable();
    int64_t apart = count / 2;
    for (; apart >= 16; apart /= 4) /* two steps at a time, so that rows are read and written half as often */
        for (int64_t first = 0; first < count; first += 2 * apart)
            for (int64_t i = first; i < first + apart / 2; i++) {
                V *here = rows + i;
                V a = here[0], b = here[apart / 2], c = here[apart], d = here[apart + apart / 2];
                EXCHANGE(a, c) EXCHANGE(b, d)
                EXCHANGE(a, b) EXCHANGE(c, d)
                here[0] = a, here[apart / 2] = b, here[apart] = c, here[apart + apart / 2] = d;
            }
    if (apart == 8)
        for (int64_t first = 0; first < count; first += 16)
            for (int64_t i = first; i < first + 8; i++)
                EXCHANGE(rows[i], rows[i + 8])
    for (int64_t first = 0; first < count; first += 8) {
        V *here = rows + first;
        READ(here);
        EXCHANGE(a, e) EXCHANGE(b, f) EXCHANGE(c, g) EXCHANGE(d, h)
        EXCHANGE(a, c) EXCHANGE(b, d) EXCHANGE(e, g) EXCHANGE(f, h)
        EXCHANGE(a, b) EXCHANGE(c, d) EXCHANGE(e, f) EXCHANGE(g, h)
        WRITE(here);
    }
}

#define TURNED_LANE(lane, by) ((lane) ^ (by))
#define EITHER_LANE(lane, bit) ((lane) & (bit) ? LANES + (lane) : (lane))
#define TURNED(x, by) LANES_OF(V, x, x, LIST(TURNED_LANE, by))
#define EITHER_OF(x, y, bit) LANES_OF(V, x, y, LIST(EITHER_LANE, bit)) /* y, where the lane's number has the bit */

/* So many columns and as many beside them, each sorted as one: first meet last, and are put in order. */
#define MEET(columns)                                                                \
    for (int64_t i = 0, j = count - 1; i < j; i++, j--) {                            \
        const V x = rows[i], y = TURNED(rows[j], 2 * (columns) - 1);                 \
        const V least = LEAST(x, y), greatest = GREATEST(x, y);                      \
        const V last = EITHER_OF(greatest, least, columns);                          \
        rows[i] = EITHER_OF(least, greatest, columns);                               \
        rows[j] = TURNED(last, 2 * (columns) - 1);                                   \
    }

/* Columns that are so many apart, likewise, where all of them are bitonic. */
#define APART(columns)                                                               \
    for (int64_t i = 0; i < count; i++) {                                            \
        const V x = rows[i], y = TURNED(x, columns);                                 \
        const V least = LEAST(x, y), greatest = GREATEST(x, y);                      \
        rows[i] = EITHER_OF(least, greatest, columns);                               \
    }

#define NAMED(x) NAME(x)
typedef V NAME(Vector);
typedef V NAME(BitsVector);
#include "../turned.h"
#undef NAMED

static void NAME(network)(WORD *keys, int64_t keys_count)
{
    union {
        V rows[MOST_KEYS / LANES];
        WORD words[MOST_KEYS];
    } all;
    V *const rows = all.rows;
    const WORD top = (WORD)1 << (8 * sizeof(WORD) - 1);
    int64_t count = 8;
    while (count * LANES < keys_count)
        count *= 2;
    for (int64_t i = 0; i < keys_count; i++)
        all.words[i] = keys[i] ^ top;
    for (int64_t i = keys_count; i < count * LANES; i++)
        all.words[i] = top - 1;

    for (int64_t first = 0; first < count; first += 8)
        NAME(eight)(rows + first);
    for (int64_t sorted = 8; sorted < count; sorted *= 2)
        for (int64_t first = 0; first < count; first += 2 * sorted) {
            for (int64_t i = first, j = first + 2 * sorted - 1; i < j; i++, j--)
                EXCHANGE(rows[i], rows[j])
            NAME(fall)(rows + first, sorted);
            NAME(fall)(rows + first + sorted, sorted);
        }
    MEET(1)
    NAME(fall)(rows, count);
#if LANES > 2
    MEET(2)
    APART(1)
    NAME(fall)(rows, count);
#endif
#if LANES > 4
    MEET(4)
    APART(2)
    APART(1)
    NAME(fall)(rows, count);
#endif
#if LANES > 8
    MEET(8)
    APART(4)
    APART(2)
    APART(1)
    NAME(fall)(rows, count);
#endif
    WORD sorted[sizeof all / sizeof(WORD)];
    int64_t row = 0;
    for (; row + LANES <= count; row += LANES) { /* columns lie one after the other again */
        NAME(turn_registers)(rows + row);
        for (int64_t lane = 0; lane < LANES; lane++)
            for (int64_t k = 0; k < LANES; k++)
                sorted[lane * count + row + k] = all.words[(row + lane) * LANES + k] ^ top;
    }
    for (; row < count; row++)
        for (int64_t lane = 0; lane < LANES; lane++)
            sorted[lane * count + row] = all.words[row * LANES + lane] ^ top;
    memcpy(keys, sorted, (size_t)keys_count * sizeof *keys);
}

/* Rows of keys side by side, a lane each: so many vectors, of which each lane is sorted by itself. `pairs` says which
   of them are compared, in order. */
static void NAME(columns)(WORD *keys, const Compared *pairs, int64_t pair_count)
{
    for (int64_t k = 0; k < pair_count; k++) {
        V one, other;
        memcpy(&one, keys + pairs[k].one * LANES, sizeof one);
        memcpy(&other, keys + pairs[k].other * LANES, sizeof other);
        EXCHANGE(one, other)
        memcpy(keys + pairs[k].one * LANES, &one, sizeof one);
        memcpy(keys + pairs[k].other * LANES, &other, sizeof other);
    }
}

#undef NAME
#undef WORD
#undef BYTES
#undef V
#undef LANES
#undef LEAST
#undef GREATEST
#undef EXCHANGE
#undef READ
#undef WRITE
#undef TURNED_LANE
#undef EITHER_LANE
#undef TURNED
#undef EITHER_OF
#undef MEET
#undef APART
