/* Where a mask holds, and whether positions are in range: loops for the threads of a pool, of pieces. */
#ifndef ESHKOL_ORDER_PLACES_H
#define ESHKOL_ORDER_PLACES_H

#include <stdint.h>

#define ESHKOL_PLACES_PIECE (1 << 14) /* truths, or positions, that are looked at together */

/* A mask, and what is found of it. */
typedef struct {
    const uint8_t *mask; /* bytes, of which 0 is false and all others are true */
    int64_t count;       /* of them */
    int64_t *before;     /* one more than there are pieces; see below */
    int64_t *places;     /* where it holds, rising */
} EshkolPlaces;

/* Of pieces begin … end - 1: how many truths hold in piece k becomes before[k + 1]. */
void eshkol_places_count(void *places, int64_t begin, int64_t end);

/* The places of those pieces, where before[k] now says how many hold in all pieces before piece k. */
void eshkol_places_find(void *places, int64_t begin, int64_t end);

/* Integers that are to be from `least` on and below `least + extent`, which is at most 2^62. */
typedef struct {
    const void *numbers;
    int64_t count, size; /* how many, and the bytes of each: 4 or 8; they are signed */
    int64_t least, extent;
    int64_t outside; /* becomes 1 if one is not */
} EshkolRange;

/* Looks at pieces begin … end - 1. */
void eshkol_places_look(void *range, int64_t begin, int64_t end);

#endif
