/* Where values belong among sorted boundaries, and where the extreme element of a row stands.
 *
 * NaN counts as greater than every number and equal to other NaN, -0 is equal to 0. */
#ifndef ESHKOL_ORDER_SEARCH_H
#define ESHKOL_ORDER_SEARCH_H

#include "../scheduler.h"

enum { /* types of elements */
    ESHKOL_SEARCH_INT8, ESHKOL_SEARCH_INT16, ESHKOL_SEARCH_INT32, ESHKOL_SEARCH_INT64,
    ESHKOL_SEARCH_UINT8, ESHKOL_SEARCH_UINT16, ESHKOL_SEARCH_UINT32, ESHKOL_SEARCH_UINT64,
    ESHKOL_SEARCH_FLOAT16, ESHKOL_SEARCH_BFLOAT16, ESHKOL_SEARCH_FLOAT32, ESHKOL_SEARCH_FLOAT64
};

/* Words of 8 bytes, as a record of sequence.h. */
typedef struct {
    uint64_t fault; /* all ones: nothing can go wrong */
    uint64_t unused;
    int64_t *out;           /* for each value, how many boundaries stand before it */
    const void *boundaries; /* rows of them, each rising */
    const void *values;     /* as many for each of these rows */
    int64_t extent;         /* boundaries of a row */
    int64_t values_of_row;  /* at least 1 */
    int64_t type;
    int64_t right; /* whether a value stands behind boundaries that are equal to it */
} EshkolSearch;

/* The results of the values begin … end - 1. */
void eshkol_order_search(void *search, int64_t begin, int64_t end);

/* Likewise a record. */
typedef struct {
    uint64_t fault;
    uint64_t unused;
    int64_t *out;     /* of each row: where its greatest (least) element stands, the first of equal ones; or of NaNs */
    const void *rows; /* one after another, their elements too */
    eshkol_scheduler *const *pool;
    int64_t length; /* of a row, at least 1 */
    int64_t type;
    int64_t least;
} EshkolExtreme;

/* The results of rows begin … end - 1. */
void eshkol_order_extreme(void *extreme, int64_t begin, int64_t end);

/* The same for one kind of processor; the first chooses. */
void eshkol_order_extreme_plain(void *extreme, int64_t begin, int64_t end);
#if defined(__x86_64__)
void eshkol_order_extreme_avx2(void *extreme, int64_t begin, int64_t end);
void eshkol_order_extreme_avx512(void *extreme, int64_t begin, int64_t end);
#endif

#endif
