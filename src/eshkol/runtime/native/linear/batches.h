/* Systems and determinants of small real matrices in batches: as many matrices at once as a register has lanes, each
   number of a matrix beside those of the others. A lane whose pivots are not all of a common size (0, NaN, infinite,
   or so small or large that its inverse is not a number to multiply with) is computed again by itself, as factors.h
   does it: what becomes of a matrix does not depend on those beside it. */

#if PARTS == 1
#define TAME_LEAST (sizeof(R) == 4 ? (R)1e-37 : (R)1e-307) /* as `inverse` in triangles.h has it */
#define TAME_MOST (sizeof(R) == 4 ? (R)1e37 : (R)1e307)

/* Registers of which none lies across two lines of a cache. */
typedef NAMED(Vector) NAMED(Whole) __attribute__((aligned(VECTOR)));

/* What is known of LANES matrices of n rows: L beside b is done, and U in a, without its diagonal. */
typedef struct {
    NAMED(Whole) a[BATCHED * BATCHED], b[BATCHED * BATCHED];
    NAMED(Whole) pivots[BATCHED], inverses[BATCHED];
    NAMED(BitsVector) swapped; /* the sign's bit, where rows were exchanged an odd number of times */
    NAMED(BitsVector) wild; /* all bits, where a pivot is not of a common size */
} NAMED(Batch);

/* x where the mask is set, else y. */
static inline NAMED(Vector) NAMED(either)(NAMED(BitsVector) mask, NAMED(Vector) x, NAMED(Vector) y)
{
    return (NAMED(Vector))((mask & (NAMED(BitsVector))x) | (~mask & (NAMED(BitsVector))y));
}

/* A column of rows from `at` on, of which the pivot's comes first and the factors' multiples of it are taken off the
   others. */
static inline ALWAYS void NAMED(take_pivot)(int64_t n, int64_t at, int64_t apart, NAMED(Whole) *column,
                                            const NAMED(BitsVector) *moved, const NAMED(Vector) *factors)
{
    const NAMED(Vector) top = column[at * apart];
    NAMED(Vector) chosen = top;
    for (int64_t i = at + 1; i < n; i++)
        chosen = NAMED(either)(moved[i], column[i * apart], chosen);
    column[at * apart] = chosen;
    for (int64_t i = at + 1; i < n; i++)
        column[i * apart] = NAMED(either)(moved[i], top, column[i * apart]) - factors[i] * chosen;
}

/* Rows of a and of `columns` columns of b are eliminated, each lane by pivots of its own. */
static inline ALWAYS void NAMED(eliminate_batch)(int64_t n, int64_t columns, NAMED(Batch) *batch)
{
    const NAMED(Size) minus = {(R)-0.0};
    NAMED(BitsVector) moved[BATCHED];
    NAMED(Vector) factors[BATCHED];
    batch->swapped = batch->wild = (NAMED(BitsVector)){0};
    for (int64_t at = 0; at < n; at++) {
        NAMED(Whole) *column = batch->a + at;
        NAMED(BitsVector) greatest = (NAMED(BitsVector))column[at * n] & ~minus.bits;
        NAMED(BitsVector) with = (NAMED(BitsVector)){0} + (NAMED(Bits))at;
        for (int64_t i = at + 1; i < n; i++) { /* bits of a size rise with it, and NaN has the greatest */
            const NAMED(BitsVector) size = (NAMED(BitsVector))column[i * n] & ~minus.bits;
            const NAMED(BitsVector) above = (NAMED(BitsVector))(size > greatest);
            greatest = (above & size) | (~above & greatest);
            with = (above & (NAMED(Bits))i) | (~above & with);
        }
        const NAMED(Vector) size = (NAMED(Vector))greatest, top = column[at * n];
        batch->wild |= ~(NAMED(BitsVector))((size > TAME_LEAST) & (size < TAME_MOST));
        batch->swapped ^= (NAMED(BitsVector))(with != (NAMED(Bits))at) & minus.bits;
        NAMED(Vector) pivot = top;
        for (int64_t i = at + 1; i < n; i++) {
            moved[i] = (NAMED(BitsVector))(with == (NAMED(Bits))i);
            pivot = NAMED(either)(moved[i], column[i * n], pivot);
        }
        const NAMED(Vector) inverse = (R)1 / pivot;
        for (int64_t i = at + 1; i < n; i++)
            factors[i] = NAMED(either)(moved[i], top, column[i * n]) * inverse;
        batch->pivots[at] = pivot;
        batch->inverses[at] = inverse;
        for (int64_t j = at + 1; j < n; j++)
            NAMED(take_pivot)(n, at, n, batch->a + j, moved, factors);
        for (int64_t j = 0; j < columns; j++)
            NAMED(take_pivot)(n, at, columns, batch->b + j, moved, factors);
    }
}

/* b becomes what U times it gives b. */
static inline ALWAYS void NAMED(substitute_batch)(int64_t n, int64_t columns, NAMED(Batch) *batch)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t at = n - 1; at >= 0; at--) {
            const NAMED(Vector) known = batch->b[at * columns + j] *= batch->inverses[at];
            for (int64_t i = 0; i < at; i++)
                batch->b[i * columns + j] -= batch->a[i * n + at] * known;
        }
}

/* Sizes that are frequent are known where they are compiled. */
static void NAMED(work_on_batch)(int64_t n, int64_t columns, NAMED(Batch) *batch)
{
#define OF_SIZE(n)                                    \
    NAMED(eliminate_batch)(n, columns, batch);        \
    NAMED(substitute_batch)(n, columns, batch)
    switch (n) {
    case 2:
        OF_SIZE(2);
        return;
    case 3:
        OF_SIZE(3);
        return;
    case 4:
        OF_SIZE(4);
        return;
    default:
        OF_SIZE(n);
    }
#undef OF_SIZE
}

/* Whether matrices are worked on side by side: that depends on all that there are, and not on how many a thread has. */
static int NAMED(is_batch)(const EshkolLinear *linear, int64_t n, int64_t columns)
{
    int64_t count = 1;
    for (int64_t k = 0; k < linear->rank; k++)
        count *= linear->batch[k].extent;
    return n > 0 && n <= BATCHED && columns <= BATCHED && count * 4 >= LANES;
}

/* Where LANES matrices of an operand begin, from `number` on: the last one again, where there are fewer. */
static void NAMED(lanes_of)(
    const EshkolLinear *linear, int operand, int64_t number, int64_t end, int64_t size, const R **from)
{
    for (int64_t lane = 0; lane < LANES; lane++)
        from[lane] = number + lane < end ? NAMED(operand)(linear, operand, number + lane, size) : from[lane - 1];
}

static void NAMED(batch_solve)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows, columns = linear->columns;
    if (!NAMED(is_batch)(linear, n, columns)) {
        NAMED(solve)(linear, begin, end);
        return;
    }
    const R *from[VECTOR / BYTES];
    R *to[VECTOR / BYTES];
    NAMED(Batch) batch;
    for (int64_t number = begin; number < end; number += LANES) {
        NAMED(lanes_of)(linear, 0, number, end, n * n, from);
        NAMED(side_by_side)(n * n, from, batch.a);
        NAMED(lanes_of)(linear, 1, number, end, n * columns, from);
        NAMED(side_by_side)(n * columns, from, batch.b);
        NAMED(work_on_batch)(n, columns, &batch);
        for (int64_t lane = 0; lane < LANES; lane++)
            to[lane] = number + lane < end ? (R *)linear->out[0] + (number + lane) * n * columns : to[lane - 1];
        NAMED(one_by_one)(n * columns, batch.b, to);
        for (int64_t lane = 0; lane < LANES && number + lane < end; lane++)
            if (batch.wild[lane])
                NAMED(solve)(linear, number + lane, number + lane + 1);
    }
}

/* Determinants of matrices side by side, or the logarithms of their sizes and their signs. */
static void NAMED(tell_batch)(EshkolLinear *linear, int64_t begin, int64_t end, int logarithm)
{
    const int64_t n = linear->rows;
    const R *from[VECTOR / BYTES];
    R *out = linear->out[0], *logarithms = linear->out[1];
    NAMED(Batch) batch;
    for (int64_t number = begin; number < end; number += LANES) {
        NAMED(lanes_of)(linear, 0, number, end, n * n, from);
        NAMED(side_by_side)(n * n, from, batch.a);
        NAMED(work_on_batch)(n, 0, &batch);
        double found[VECTOR / BYTES];
        int common[VECTOR / BYTES]; /* whether the product is neither small nor large on the way */
        for (int64_t lane = 0; lane < LANES; lane++) {
            found[lane] = batch.swapped[lane] ? -1 : 1;
            common[lane] = !batch.wild[lane];
        }
        for (int64_t k = 0; k < n; k++)
            for (int64_t lane = 0; lane < LANES; lane++) {
                found[lane] *= (double)((const R *)batch.pivots)[k * LANES + lane];
                common[lane] &= (fabs(found[lane]) > 1e-290) & (fabs(found[lane]) < 1e290);
            }
        for (int64_t lane = 0; lane < LANES && number + lane < end; lane++) {
            if (!common[lane])
                (logarithm ? NAMED(slogdet) : NAMED(det))(linear, number + lane, number + lane + 1);
            else if (!logarithm)
                out[number + lane] = (R)found[lane];
            else {
                out[number + lane] = found[lane] < 0 ? -1 : 1;
                logarithms[number + lane] = (R)log(fabs(found[lane]));
            }
        }
    }
}

static void NAMED(batch_det)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    if (NAMED(is_batch)(linear, linear->rows, 0))
        NAMED(tell_batch)(linear, begin, end, 0);
    else
        NAMED(det)(linear, begin, end);
}

static void NAMED(batch_slogdet)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    if (NAMED(is_batch)(linear, linear->rows, 0))
        NAMED(tell_batch)(linear, begin, end, 1);
    else
        NAMED(slogdet)(linear, begin, end);
}

#undef TAME_LEAST
#undef TAME_MOST
#else
/* Complex ones are worked on one by one. */
static void NAMED(batch_solve)(void *context, int64_t begin, int64_t end) { NAMED(solve)(context, begin, end); }
static void NAMED(batch_det)(void *context, int64_t begin, int64_t end) { NAMED(det)(context, begin, end); }
static void NAMED(batch_slogdet)(void *context, int64_t begin, int64_t end) { NAMED(slogdet)(context, begin, end); }
#endif
