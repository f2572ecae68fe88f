/* What runs of compiled derivatives leave behind, as Scheme data: see fast_results.c. Only fast.c needs this. */
#ifndef ESHKOL_SCHEME_FAST_RESULTS_H
#define ESHKOL_SCHEME_FAST_RESULTS_H

#include "fast.h"

enum { NUMBERS = -1, ROWS = -2 }; /* instead of a lane: the numbers themselves; the derivatives of all lanes */

typedef struct {
    Context *context;
    const char *at;        /* the rest of the description of the results (FastCode) */
    const uint64_t *words; /* theirs */
    int64_t lanes, lane;
    int64_t start, count; /* of rows: which derivatives; and what they are made: v, l, or f for a single one */
    char style;
    uint64_t *rows;        /* the derivatives of all numbers by all leaves, where they were collected; or null */
    int64_t row, number;   /* words of one of them, and which one is next */
    uint64_t wild; /* its top bit: whether some derivative is not finite */
} Results;

/* Results put together as the code says: one number or structure, or several in lists and vectors. */
Value esk_fast_shaped(Results *);
/* Copy the derivatives in so many lanes of each number of the results into the rows, from a leaf on; how many numbers
 * there are. */
int64_t esk_fast_collect(Results *, int64_t leaf, int64_t lanes);
/* The list (value gradient ...) that a reverse sweep leaves in its inputs and outputs. */
Value esk_fast_gradients(Results *, const FastCode *, const uint64_t *in, const uint64_t *out);

static inline bool esk_fast_is_guard(const FastInput *input) {
    char kind = *input->descriptor;
    return kind == 'P' || kind == 'R' || kind == 'N' || kind == '=' || kind == 'S';
}

#endif
