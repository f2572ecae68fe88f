/* Solutions in the sense of least squares of one dtype, as the function of linear.h; as factors.h, included by kinds.h
   behind qr.h. A matrix whose rank is beyond doubt goes by reflections: of its columns if it is high, of its rows if it
   is wide. Any other goes by its singular values, of which those that count as 0 are left out. */

/* What least squares by reflections work with: the matrix as vectors of its longer side, right sides likewise behind
   them, the triangle R and its inverse. */
typedef struct {
    int64_t most, least, sides, panels;
    T *at, *beside, *with, *taus, *r, *inverse;
    NAMED(Reflections) *all;
} NAMED(Nearest);

/* The sum of the squares of the moduli. */
static double NAMED(squares)(const T *x, int64_t count)
{
    const R *parts = (const R *)x;
    double sum = 0;
    for (int64_t i = 0; i < count * PARTS; i++)
        sum += (double)parts[i] * (double)parts[i];
    return sum;
}

/* Whether no singular value of R can be as small as the cutoff says: their quotient is at most the product of the norms
   of R and its inverse, as sums of squares. What is not finite is in doubt. */
static int NAMED(beyond_doubt)(const NAMED(Work) *work, const NAMED(Nearest) *n, double cutoff)
{
    memset(n->inverse, 0, (size_t)(n->least * n->least) * sizeof(T));
    for (int64_t k = 0; k < n->least; k++) {
        if (NAMED(size)(n->r[k * (n->least + 1)]) == 0)
            return 0;
        n->inverse[k * (n->least + 1)] = NAMED(of)(1);
    }
    NAMED(under)(work, n->least, (NAMED(Triangle)){n->r, n->least, 1, 0, 0}, n->inverse, n->least, n->least);
    const double one = NAMED(squares)(n->r, n->least * n->least);
    const double other = NAMED(squares)(n->inverse, n->least * n->least);
    return sqrt(one) * sqrt(other) * cutoff < 0.5;
}

/* The vectors become reflections and R; right sides that are there are reflected, too. */
static void NAMED(reflect_all)(const NAMED(Work) *work, const NAMED(Nearest) *n, int64_t sides)
{
    for (int64_t p = 0; p < n->panels; p++) {
        const int64_t first = p * PANEL, left = n->least - first, count = left < PANEL ? left : PANEL;
        NAMED(Reflections) *all = &n->all[p];
        NAMED(panel)(n->at, n->most, n->least, first, count, n->taus + first, 1, n->r);
        all->vectors = n->at + first * n->most + first;
        all->count = count, all->n = n->most - first, all->stride = n->most;
        NAMED(gather)(work, all, n->taus + first);
        if (left - count + sides > 0)
            NAMED(reflect)(work, all, 1, n->at + (first + count) * n->most + first, left - count + sides, n->most,
                           n->with);
    }
}

/* One system by reflections, if its rank is beyond doubt. */
static int NAMED(by_reflections)(const EshkolLinear *linear, const NAMED(Work) *work, const NAMED(Nearest) *n,
                                 const T *x, const T *b, T *out)
{
    const int64_t rows = linear->rows, columns = linear->columns, sides = n->sides;
    const int high = rows >= columns;
    const R scale = NAMED(scale)((const R *)x, rows * columns * PARTS), by = scale == 0 ? 1 : 1 / scale;
    if (high) {
        NAMED(turn_over)(x, columns, rows, columns, n->at, rows, by);
        NAMED(turn_over)(b, sides, rows, sides, n->beside, rows, 1);
    } else
        for (int64_t i = 0; i < rows * columns; i++)
            n->at[i] = NAMED(scaled)(x[i], by);
    NAMED(reflect_all)(work, n, high ? sides : 0);
    if (!NAMED(beyond_doubt)(work, n, linear->cutoff))
        return 0;
    if (high) {
        NAMED(turn_over)(n->beside, rows, sides, columns, out, sides, by);
        NAMED(under)(work, columns, (NAMED(Triangle)){n->r, columns, 1, 0, 0}, out, sides, sides);
        return 1;
    }
    /* The transpose of x is Q · R; the shortest solution is what the conjugate of Q makes of that under R turned. */
    T *found = n->inverse + rows * rows;
    for (int64_t i = 0; i < rows * sides; i++)
        found[i] = NAMED(scaled)(b[i], by);
    NAMED(under)(work, rows, (NAMED(Triangle)){n->r, 1, rows, 1, 0}, found, sides, sides);
    memset(n->beside, 0, (size_t)(columns * sides) * sizeof(T));
    for (int64_t j = 0; j < sides; j++)
        for (int64_t i = 0; i < rows; i++)
            n->beside[j * columns + i] = NAMED(turned)(found[i * sides + j]);
    for (int64_t p = n->panels - 1; p >= 0; p--)
        NAMED(reflect)(work, &n->all[p], 0, n->beside + p * PANEL, sides, columns, n->with);
    for (int64_t j = 0; j < sides; j++)
        for (int64_t i = 0; i < columns; i++)
            out[i * sides + j] = NAMED(turned)(n->beside[j * columns + i]);
    return 1;
}

/* One system by singular values; what LAPACK says. */
static int32_t NAMED(by_values)(const EshkolLinear *linear, const NAMED(Work) *work, NAMED(Spectrum) *s, const T *x,
                                const T *b, T *out)
{
    const int64_t rows = linear->rows, columns = linear->columns, least = rows < columns ? rows : columns;
    const int64_t sides = linear->sides;
    T *u = s->vectors, *vh = s->others, *between = u + rows * least;
    memcpy(s->matrix, x, (size_t)(rows * columns) * sizeof(T));
    const int32_t info
        = NAMED(call_svd)(s, 'S', (int32_t)rows, (int32_t)columns, s->matrix, s->values, u, vh);
    if (info != 0)
        return info;
    memset(between, 0, (size_t)(least * sides) * sizeof(T));
    memset(out, 0, (size_t)(columns * sides) * sizeof(T));
    /* Conjugates of all that is computed, so that the matrices on the left are read as they are. */
    NAMED(subtract)(work, (NAMED(Product)){
        .a = u, .b = b, .c = between, .rows = least, .columns = sides, .depth = rows, .a_row = 1, .a_column = least,
        .b_row = sides, .b_column = 1, .c_row = sides, .conjugate = 1,
    });
    for (int64_t k = 0; k < least; k++) {
        const int kept = (double)s->values[k] > (double)s->values[0] * linear->cutoff;
        for (int64_t j = 0; j < sides; j++)
            between[k * sides + j] = kept ? NAMED(scaled)(between[k * sides + j], 1 / s->values[k]) : NAMED(of)(0);
    }
    NAMED(subtract)(work, (NAMED(Product)){
        .a = vh, .b = between, .c = out, .rows = columns, .columns = sides, .depth = least, .a_row = 1,
        .a_column = columns, .b_row = sides, .b_column = 1, .c_row = sides,
    });
    for (int64_t i = 0; i < columns * sides; i++)
        out[i] = NAMED(turned)(out[i]);
    return 0;
}

static void NAMED(nearest)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t rows = linear->rows, columns = linear->columns, sides = linear->sides;
    const int64_t least = rows < columns ? rows : columns, most = rows < columns ? columns : rows;
    const int64_t high = least + sides;
    NAMED(Nearest) n = {.most = most, .least = least, .sides = sides, .panels = (least + PANEL - 1) / PANEL};
    NAMED(Spectrum) s = {.function = linear->lapack};
    NAMED(Work) work;
    const int64_t numbers = high * (most + 2 * PANEL) + least * (1 + 2 * least + sides);
    n.at = NAMED(prepared)(linear, &work, numbers, 0);
    n.all = malloc((size_t)n.panels * sizeof *n.all + 1);
    if (n.all == NULL)
        eshkol_linear_fault(linear, ESHKOL_LINEAR_NO_MEMORY);
    if (n.at == NULL || n.all == NULL)
        end = begin;
    else {
        n.beside = n.at + least * most, n.with = n.beside + sides * most, n.taus = n.with + 2 * high * PANEL;
        n.r = n.taus + least, n.inverse = n.r + least * least;
    }
    for (int64_t number = begin; number < end; number++) {
        const T *x = NAMED(operand)(linear, 0, number, rows * columns);
        const T *b = NAMED(operand)(linear, 1, number, rows * sides);
        T *out = (T *)linear->out[0] + number * columns * sides;
        if (NAMED(by_reflections)(linear, &work, &n, x, b, out))
            continue;
        if (!NAMED(finite)(x, rows * columns)) {
            eshkol_linear_fault(linear, (uint64_t)number * 2);
            continue;
        }
        if (s.memory == NULL) {
            NAMED(call_svd)(&s, 'S', (int32_t)rows, (int32_t)columns, NULL, NULL, NULL, NULL);
            if (!NAMED(allotted)(linear, &s, rows * columns, rows * least + least * sides, least * columns, least))
                break;
        }
        eshkol_linear_alone(linear, 1);
        if (NAMED(by_values)(linear, &work, &s, x, b, out) != 0)
            eshkol_linear_fault(linear, (uint64_t)number * 2 + 1);
        eshkol_linear_alone(linear, 0);
    }
    eshkol_scratch_give(s.memory);
    free(n.all);
    eshkol_scratch_give(n.at);
}
