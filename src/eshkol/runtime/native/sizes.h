/* Plans for any size: what the tables of a library compute when they learn the size.
 *
 * Integers are those of Python: quotients are rounded down, and what does not fit is noted in `bad` instead of being
 * wrapped. Places of the arena are laid as schedule/plan/arena.py lays them. */
#ifndef ESHKOL_SIZES_H
#define ESHKOL_SIZES_H

#include <stdint.h>

#define ESHKOL_PLACE_ALIGNMENT 64

static inline int64_t eshkol_add(int64_t a, int64_t b, int *bad)
{
    int64_t found;
    *bad |= __builtin_add_overflow(a, b, &found);
    return found;
}

static inline int64_t eshkol_sub(int64_t a, int64_t b, int *bad)
{
    int64_t found;
    *bad |= __builtin_sub_overflow(a, b, &found);
    return found;
}

static inline int64_t eshkol_mul(int64_t a, int64_t b, int *bad)
{
    int64_t found;
    *bad |= __builtin_mul_overflow(a, b, &found);
    return found;
}

static inline int64_t eshkol_quotient(int64_t a, int64_t b, int *bad)
{
    if (b == 0 || (b == -1 && a == INT64_MIN)) {
        *bad = 1;
        return 0;
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t eshkol_remainder(int64_t a, int64_t b, int *bad)
{
    return b == -1 ? 0 : eshkol_sub(a, eshkol_mul(b, eshkol_quotient(a, b, bad), bad), bad);
}

static inline int64_t eshkol_power(int64_t a, int64_t b, int *bad)
{
    int64_t found = 1;
    *bad |= b < 0 || b > 64;
    for (int64_t k = 0; k < b && !*bad; k++)
        found = eshkol_mul(found, a, bad);
    return found;
}

static inline int64_t eshkol_left(int64_t a, int64_t b, int *bad)
{
    *bad |= b < 0 || b > 62;
    return eshkol_mul(a, (int64_t)1 << (b & 63), bad);
}

static inline int64_t eshkol_right(int64_t a, int64_t b, int *bad)
{
    *bad |= b < 0 || b > 63;
    return eshkol_quotient(a, b > 62 ? INT64_MAX : (int64_t)1 << (b & 63), bad);
}

static inline int64_t eshkol_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t eshkol_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* A place that takes memory (that of `heir`, if it is not negative), or gives its memory back. */
typedef struct {
    int64_t place, heir, ends;
} eshkol_tenancy;

typedef struct {
    int64_t offset, size;
} eshkol_gap;

/* Where places lie, by their sizes, in `offsets`; the bytes that all take. `gaps` has room for one more than there are
 * tenancies. */
static inline int64_t eshkol_placed(const eshkol_tenancy *order, int64_t count, const int64_t *sizes, int64_t *offsets,
                                    eshkol_gap *gaps, int *bad)
{
    int64_t whole = 0, free = 0;
    for (int64_t k = 0; k < count && !*bad; k++) {
        int64_t place = order[k].place, size = sizes[place];
        *bad |= size < 0 || size > (int64_t)1 << 48;
        size = (size + ESHKOL_PLACE_ALIGNMENT - 1) / ESHKOL_PLACE_ALIGNMENT * ESHKOL_PLACE_ALIGNMENT;
        if (order[k].ends) {
            int64_t at = 0;
            while (at < free && gaps[at].offset < offsets[place])
                at++;
            for (int64_t m = free++; m > at; m--)
                gaps[m] = gaps[m - 1];
            gaps[at] = (eshkol_gap){offsets[place], size};
            if (at + 1 < free && gaps[at].offset + gaps[at].size == gaps[at + 1].offset) {
                gaps[at].size += gaps[at + 1].size;
                free--;
                for (int64_t m = at + 1; m < free; m++)
                    gaps[m] = gaps[m + 1];
            }
            if (at > 0 && gaps[at - 1].offset + gaps[at - 1].size == gaps[at].offset) {
                gaps[at - 1].size += gaps[at].size;
                free--;
                for (int64_t m = at; m < free; m++)
                    gaps[m] = gaps[m + 1];
            }
            continue;
        }
        if (order[k].heir >= 0) {
            offsets[place] = offsets[order[k].heir];
            continue;
        }
        int64_t best = -1;
        for (int64_t m = 0; m < free; m++)
            if (gaps[m].size >= size && (best < 0 || gaps[m].size < gaps[best].size))
                best = m;
        if (best >= 0) {
            offsets[place] = gaps[best].offset;
            gaps[best].offset += size;
            gaps[best].size -= size;
            if (gaps[best].size == 0) {
                free--;
                for (int64_t m = best; m < free; m++)
                    gaps[m] = gaps[m + 1];
            }
        } else if (free > 0 && gaps[free - 1].offset + gaps[free - 1].size == whole) { /* the last gap, grown */
            offsets[place] = gaps[--free].offset;
            whole = offsets[place] + size;
        } else {
            offsets[place] = whole;
            whole += size;
        }
    }
    return whole;
}

#endif
