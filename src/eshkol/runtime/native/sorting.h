/* What surrounds a sort of integers: numbers as items that integers are sorted as, sorted items as results; and the
   first few of an order, found without sorting the rest.

   NaN counts as greater than every number and equal to other NaN, -0 is equal to 0, and equal numbers keep the order in
   which they stand, also where the greatest come first. Each function has the form of a loop's body (scheduler.h): the
   caller divides the work among threads. */
#ifndef ESHKOL_SORTING_H
#define ESHKOL_SORTING_H

#include <stdint.h>

enum { ESHKOL_SORT_UNSIGNED, ESHKOL_SORT_SIGNED, ESHKOL_SORT_FLOAT };

typedef struct {
    const void *rows;  /* one after another, their elements too */
    void *values;      /* `kept` of each row, in order */
    int64_t *places;   /* where in their row they stand */
    int64_t length;    /* of a row; less than 2^32 */
    int64_t kept;
    uint64_t *items;   /* of each element of up to 4 bytes: its key, then its place; of 8 bytes: its key alone */
    uint64_t *merged;  /* where items of runs are merged to */
    int64_t run;       /* items of a run that is sorted; two neighbours become one of twice the length */
    int64_t piece;     /* items that one turn of a loop merges */
    uint64_t infinity; /* of floats, as bits */
    int32_t kind;
    int32_t size;      /* of an element: 1, 2, 4 or 8 bytes */
    int32_t descending;
    int32_t failed;    /* set where memory was wanting: nothing that was written counts */
} EshkolSort;

/* The items of rows begin … end - 1, in the order of the elements. */
void eshkol_sort_items(void *sort, int64_t begin, int64_t end);

/* The results of rows begin … end - 1, whose items are sorted. */
void eshkol_sort_results(void *sort, int64_t begin, int64_t end);

/* The results of rows begin … end - 1 of 8-byte elements, whose places are in the order of their keys; those of equal
   keys may be in any. */
void eshkol_sort_settled(void *sort, int64_t begin, int64_t end);

/* Pieces begin … end - 1 of one row's items, merged from two runs each. */
void eshkol_sort_merged(void *sort, int64_t begin, int64_t end);

/* The first `kept` of rows begin … end - 1: the results. */
void eshkol_sort_first(void *sort, int64_t begin, int64_t end);

#endif
