/* Q · R of one dtype, as the function of linear.h; as factors.h, included by kinds.h. The matrix is worked on as its
   transpose, so that its columns lie together: Householder's reflections of PANEL columns at a time, one by one, and
   all of them at once, as products, on what is right of them. */

/* The scalar product of the conjugate of x with y. */
static T NAMED(inner)(const T *x, const T *y, int64_t n)
{
#if PARTS == 1
    NAMED(Vector) sums[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        UNROLL
        for (int64_t k = 0; k < 4; k++)
            sums[k] += *(const NAMED(Vector) *)(x + i + k * LANES) * *(const NAMED(Vector) *)(y + i + k * LANES);
    const NAMED(Vector) all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    T sum = 0;
    for (int lane = 0; lane < (int)LANES; lane++)
        sum += all[lane];
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum;
#else
    T sum = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        sum.re += x[i].re * y[i].re + x[i].im * y[i].im;
        sum.im += x[i].re * y[i].im - x[i].im * y[i].re;
    }
    return sum;
#endif
}

static inline void NAMED(take_off)(T *y, T factor, const T *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = NAMED(less)(y[i], factor, x[i]);
}

/* x becomes the vector of a reflection, with 1 for its first number, which leaves nothing of x but the real number that
   is returned; the reflection is 1 - tau · vector · its adjoint. */
static T NAMED(reflection)(T *x, int64_t n, T *tau)
{
    const T first = x[0];
    const R rest = NAMED(real)(NAMED(inner)(x + 1, x + 1, n - 1));
    x[0] = NAMED(of)(1);
    *tau = NAMED(of)(0);
#if PARTS == 1
    if (rest == 0)
        return first;
    const R length = ROOT(first * first + rest), left = first < 0 ? length : -length;
    *tau = (left - first) / left;
#else
    if (rest == 0 && first.im == 0)
        return first;
    const R length = ROOT(first.re * first.re + first.im * first.im + rest), left = first.re < 0 ? length : -length;
    *tau = (T){(left - first.re) / left, -first.im / left};
#endif
    const T by = NAMED(over)(NAMED(of)(1), NAMED(less)(first, NAMED(of)(1), NAMED(of)(left)));
    for (int64_t i = 1; i < n; i++)
        x[i] = NAMED(times)(x[i], by);
    return NAMED(of)(left);
}

/* Reflections as 1 - V · T · adjoint of V: `count` vectors that lie `stride` apart, with n numbers; T is an upper
   triangle. */
typedef struct {
    const T *vectors;
    int64_t count, n, stride;
    T triangle[PANEL][PANEL];
} NAMED(Reflections);

/* The triangle of reflections, each with its tau: of what they have to do with each other. */
static void NAMED(gather)(const NAMED(Work) *work, NAMED(Reflections) *all, const T *taus)
{
    T with[PANEL][PANEL];
    memset(with, 0, sizeof with);
    memset(all->triangle, 0, sizeof all->triangle);
    NAMED(subtract)(work, (NAMED(Product)){
        .a = all->vectors, .b = all->vectors, .c = with[0], .rows = all->count, .columns = all->count, .depth = all->n,
        .a_row = all->stride, .a_column = 1, .b_row = 1, .b_column = all->stride, .c_row = PANEL, .conjugate = 1,
    });
    for (int64_t k = 0; k < all->count; k++) {
        for (int64_t p = 0; p < k; p++) {
            T sum = NAMED(of)(0);
            for (int64_t q = p; q < k; q++)
                sum = NAMED(less)(sum, all->triangle[p][q], NAMED(turned)(with[q][k]));
            all->triangle[p][k] = NAMED(less)(NAMED(of)(0), sum, taus[k]);
        }
        all->triangle[k][k] = taus[k];
    }
}

/* Rows of `at` (`rows` of them, `stride` apart) are reflected, by all or, turned, by their adjoint; `with` is memory
   for 2 · PANEL numbers of each row. */
static void NAMED(reflect)(const NAMED(Work) *work, const NAMED(Reflections) *all, int turned, T *at, int64_t rows,
                           int64_t stride, T *with)
{
    const int64_t count = all->count;
    T *found = with + rows * count;
    memset(with, 0, (size_t)(2 * rows * count) * sizeof(T));
    NAMED(subtract)(work, (NAMED(Product)){
        .a = at, .b = all->vectors, .c = with, .rows = rows, .columns = count, .depth = all->n, .a_row = stride,
        .a_column = 1, .b_row = 1, .b_column = all->stride, .c_row = count, .conjugate = 1,
    });
    NAMED(subtract)(work, (NAMED(Product)){
        .a = with, .b = all->triangle[0], .c = found, .rows = rows, .columns = count, .depth = count, .a_row = count,
        .a_column = 1, .b_row = turned ? PANEL : 1, .b_column = turned ? 1 : PANEL, .c_row = count, .conjugate = turned,
    });
    NAMED(subtract)(work, (NAMED(Product)){
        .a = found, .b = all->vectors, .c = at, .rows = rows, .columns = all->n, .depth = count, .a_row = count,
        .a_column = 1, .b_row = all->stride, .b_column = 1, .c_row = stride,
    });
}

/* Columns first … of the matrix whose transpose lies at `at` (columns × rows) become vectors, and their part of R. */
static void NAMED(panel)(T *at, int64_t rows, int64_t columns, int64_t first, int64_t count, T *taus, R back, T *r)
{
    for (int64_t k = first; k < first + count; k++) {
        T *x = at + k * rows;
        for (int64_t i = 0; i < k; i++) /* what is over the diagonal is done */
            r[i * columns + k] = NAMED(scaled)(x[i], back);
        r[k * columns + k] = NAMED(scaled)(NAMED(reflection)(x + k, rows - k, &taus[k - first]), back);
        for (int64_t i = k + 1; i < columns; i++)
            r[i * columns + k] = NAMED(of)(0);
        memset(x + first, 0, (size_t)(k - first) * sizeof(T)); /* of a vector, as far as the panel reaches */
        const T tau = NAMED(turned)(taus[k - first]);
        for (int64_t j = k + 1; j < first + count; j++) {
            T *y = at + j * rows + k;
            NAMED(take_off)(y, NAMED(times)(tau, NAMED(inner)(x + k, y, rows - k)), x + k, rows - k);
        }
    }
}

static void NAMED(qr)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t rows = linear->rows, columns = linear->columns, size = rows * columns;
    const int64_t panels = (columns + PANEL - 1) / PANEL;
    const int alone = (linear->flags & ESHKOL_TRIANGLE_ALONE) != 0;
    NAMED(Work) work;
    T *at = NAMED(prepared)(linear, &work, 2 * size + 2 * columns * PANEL + columns, 0);
    NAMED(Reflections) *all = malloc((size_t)panels * sizeof *all + 1);
    if (all == NULL)
        eshkol_linear_fault(linear, ESHKOL_LINEAR_NO_MEMORY);
    for (int64_t number = begin; number < end && at != NULL && all != NULL; number++) {
        T *q = at + size, *with = q + size, *taus = with + 2 * columns * PANEL;
        const T *x = NAMED(operand)(linear, 0, number, size);
        const R scale = NAMED(scale)((const R *)x, size * PARTS), back = scale == 0 ? 1 : scale;
        NAMED(turn_over)(x, columns, rows, columns, at, rows, 1 / back);
        for (int64_t p = 0; p < panels; p++) {
            const int64_t first = p * PANEL, left = columns - first, count = left < PANEL ? left : PANEL;
            NAMED(panel)(at, rows, columns, first, count, taus + first, back,
                         (T *)linear->out[alone ? 0 : 1] + number * columns * columns);
            if (alone && left == count)
                break;
            all[p].vectors = at + first * rows + first;
            all[p].count = count, all[p].n = rows - first, all[p].stride = rows;
            NAMED(gather)(&work, &all[p], taus + first);
            if (left > count)
                NAMED(reflect)(&work, &all[p], 1, at + (first + count) * rows + first, left - count, rows, with);
        }
        if (alone)
            continue;
        memset(q, 0, (size_t)size * sizeof(T));
        for (int64_t k = 0; k < columns; k++)
            q[k * (rows + 1)] = NAMED(of)(1);
        for (int64_t p = panels - 1; p >= 0; p--) {
            const int64_t first = p * PANEL;
            NAMED(reflect)(&work, &all[p], 0, q + first * (rows + 1), columns - first, rows, with);
        }
        NAMED(turn_over)(q, rows, columns, rows, (T *)linear->out[0] + number * size, columns, 1);
    }
    free(all);
    eshkol_scratch_give(at);
}
