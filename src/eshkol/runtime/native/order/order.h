/* Numbers in order: sorts of rows, and parts of an order, found without sorting the rest.
 *
 * NaN counts as greater than every number and equal to other NaN, -0 is equal to 0, and equal numbers keep the order in
 * which they stand, also where the greatest come first. Results are the same bits for any number of threads. */
#ifndef ESHKOL_ORDER_H
#define ESHKOL_ORDER_H

#include "../scheduler.h"

enum { ESHKOL_ORDER_UNSIGNED, ESHKOL_ORDER_SIGNED, ESHKOL_ORDER_FLOAT };
enum { ESHKOL_ORDER_VALUES = 1, ESHKOL_ORDER_PLACES = 2 }; /* what is wanted of it */

#define ESHKOL_ORDER_FINE UINT64_MAX /* nothing was wrong; anything else: there was no memory to work in */

typedef struct {
    int64_t begin, end;
} EshkolRanks;

/* Words of 8 bytes, as a record of sequence.h. */
typedef struct {
    uint64_t fault;
    uint64_t unused;
    void *values;     /* `kept` of each row: those of the ranges, one range after another; if they are wanted */
    int64_t *places;  /* where in their row they stand; if they are wanted */
    const void *rows; /* one after another, their elements too */
    eshkol_scheduler *const *pool; /* where the pool is found */
    int64_t length;   /* of a row: 1 … 2^32 - 1 */
    int64_t kept;     /* all ranges together */
    int64_t size;     /* of an element: 1, 2, 4 or 8 bytes */
    int64_t kind;
    uint64_t infinity; /* of floats, as bits */
    int64_t descending;
    int64_t wants;
    int64_t range_count;
    EshkolRanks ranges[]; /* of ranks in the order, rising and apart from each other */
} EshkolOrder;

/* The results of rows begin … end - 1. */
void eshkol_order_rows(void *order, int64_t begin, int64_t end);

/* The same for one kind of processor; the first chooses. */
void eshkol_order_rows_plain(void *order, int64_t begin, int64_t end);
#if defined(__x86_64__)
void eshkol_order_rows_avx2(void *order, int64_t begin, int64_t end);
void eshkol_order_rows_avx512(void *order, int64_t begin, int64_t end);
#endif

#endif
