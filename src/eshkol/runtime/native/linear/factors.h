/* The functions of linear.h for one dtype, of what products.h has; as that, included by kinds.h for each. */

/* --- L · U -------------------------------------------------------------------------------------------------------- */

typedef struct {
    T *at;
    int64_t rows, columns; /* a row lies behind the other */
    int64_t *order;        /* which row of the first matrix stands in each row */
    int32_t *pivots;       /* NULL, or for each column the row that was exchanged with the diagonal's, from 1 on */
    int64_t swaps;
    int singular; /* a column had nothing but zeros for its pivot */
} NAMED(Factors);

/* The row from `at` on with the greatest number in a column; NaN counts as greater. */
static int64_t NAMED(pivot)(const NAMED(Factors) *f, int64_t at)
{
    int64_t found = at;
    R best = NAMED(size)(f->at[at * f->columns + at]);
    for (int64_t i = at + 1; i < f->rows && best == best; i++) {
        const R size = NAMED(size)(f->at[i * f->columns + at]);
        if (!(size <= best)) {
            best = size;
            found = i;
        }
    }
    return found;
}

static void NAMED(swap)(NAMED(Factors) *f, int64_t one, int64_t other)
{
    T *a = f->at + one * f->columns, *b = f->at + other * f->columns;
    for (int64_t j = 0; j < f->columns; j++) {
        const T kept = a[j];
        a[j] = b[j];
        b[j] = kept;
    }
    const int64_t row = f->order[one];
    f->order[one] = f->order[other];
    f->order[other] = row;
    f->swaps++;
}

/* Columns first … first + width - 1, from the diagonal down, one after the other. */
static void NAMED(eliminate)(NAMED(Factors) *f, int64_t first, int64_t width)
{
    const int64_t end = first + width;
    int64_t known = -1; /* the pivot of the next column, where it was met on the way */
    for (int64_t at = first; at < end; at++) {
        const int64_t with = known < 0 ? NAMED(pivot)(f, at) : known;
        known = -1;
        if (f->pivots != NULL)
            f->pivots[at] = (int32_t)(with + 1);
        if (with != at)
            NAMED(swap)(f, at, with);
        const T *row = f->at + at * f->columns;
        const T divisor = row[at];
        if (NAMED(size)(divisor) == 0) {
            f->singular = 1;
            continue;
        }
        const T inverse = NAMED(inverse)(divisor);
        const int by = NAMED(size)(inverse) != 0;
        if (width == LEAF) { /* so many at once */
            T others[LEAF];
            for (int64_t j = 0; j < LEAF; j++)
                others[j] = first + j > at ? row[first + j] : NAMED(of)(0);
            R best = -1;
            const int64_t next = at + 1 - first;
            for (int64_t i = at + 1; i < f->rows; i++) {
                T *under = f->at + i * f->columns + first;
                const T above = under[at - first];
                const T factor = by ? NAMED(times)(above, inverse) : NAMED(over)(above, divisor);
                UNROLL
                for (int64_t j = 0; j < LEAF; j++)
                    under[j] = NAMED(less)(under[j], factor, others[j]);
                under[at - first] = factor; /* last: what was just written could not be read together with the others */
                if (next < LEAF) {
                    const R size = NAMED(size)(under[next]);
                    if (!(size <= best)) {
                        known = best == best ? i : known;
                        best = best == best ? size : best;
                    }
                }
            }
            continue;
        }
        for (int64_t i = at + 1; i < f->rows; i++) {
            T *under = f->at + i * f->columns;
            const T factor = under[at] = by ? NAMED(times)(under[at], inverse) : NAMED(over)(under[at], divisor);
            for (int64_t j = at + 1; j < end; j++)
                under[j] = NAMED(less)(under[j], factor, row[j]);
        }
    }
}

#if PARTS == 1
/* The same of matrices that are not small, by panels.h. */
static void NAMED(eliminate_turned)(const NAMED(Work) *work, NAMED(Factors) *f, int64_t first, int64_t width)
{
    const int64_t stride = f->columns, rows = f->rows - first;
    NAMED(Panel) p = {.at = work->panel, .rows = rows, .pitch = NAMED(panel_pitch)(rows)};
    R *corner = f->at + first * (stride + 1);
    NAMED(turn_over)(corner, stride, rows, width, p.at, p.pitch, 1);
    NAMED(eliminate_panel)(work, &p, width, 0, width);
    f->singular |= p.singular;
    for (int64_t k = 0; k < width; k++) {
        if (f->pivots != NULL)
            f->pivots[first + k] = (int32_t)(first + p.with[k] + 1);
        if (p.with[k] != k)
            NAMED(swap)(f, first + k, first + p.with[k]);
    }
    NAMED(turn_over)(p.at, p.pitch, width, rows, corner, stride, 1);
}
#endif

static void NAMED(halve)(const NAMED(Work) *work, NAMED(Factors) *f, int64_t first, int64_t width)
{
#if PARTS == 1
    if (width <= PANEL_COLUMNS && f->rows > SMALL) {
        NAMED(eliminate_turned)(work, f, first, width);
        return;
    }
#endif
    if (width <= LEAF || f->rows <= SMALL) {
        NAMED(eliminate)(f, first, width);
        return;
    }
    const int64_t half = (width / 2 + LEAF - 1) / LEAF * LEAF, rest = width - half, stride = f->columns;
    T *corner = f->at + first * (stride + 1);
    NAMED(halve)(work, f, first, half);
    NAMED(under)(work, half, (NAMED(Triangle)){corner, stride, 1, 1, 1}, corner + half, rest, stride);
    NAMED(subtract)(work, (NAMED(Product)){
        .a = corner + half * stride, .b = corner + half, .c = corner + half * (stride + 1),
        .rows = f->rows - first - half, .columns = rest, .depth = half, .a_row = stride, .a_column = 1,
        .b_row = stride, .b_column = 1, .c_row = stride,
    });
    NAMED(halve)(work, f, first + half, rest);
}

/* The matrix becomes its factors. */
static void NAMED(factor)(const NAMED(Work) *work, NAMED(Factors) *f)
{
    for (int64_t i = 0; i < f->rows; i++)
        f->order[i] = i;
    const int64_t square = f->rows < f->columns ? f->rows : f->columns;
    if (square == 0)
        return;
    NAMED(halve)(work, f, 0, square);
    if (f->columns > square)
        NAMED(under)(work, square, (NAMED(Triangle)){f->at, f->columns, 1, 1, 1}, f->at + square,
                     f->columns - square, f->columns);
}

/* --- memory to work in -------------------------------------------------------------------------------------------- */

/* What matrices of up to so many rows and columns need to be worked on, with `matrix` numbers and `order` places
   beside; NULL where there is no memory, which is taken down. */
static void *NAMED(prepared)(EshkolLinear *linear, NAMED(Work) *work, int64_t matrix, int64_t order)
{
    const int64_t rows = linear->rows, columns = linear->columns, longer = rows > columns ? rows : columns;
    const int64_t most = longer > linear->sides ? longer : linear->sides;
    const int64_t depth = most < DEPTH ? most : DEPTH, breadth = most < BREADTH ? most : BREADTH;
    const int64_t packed = most <= SMALL ? 0 : depth * PARTS * (breadth + WIDTH);
    const int64_t panel = PARTS == 2 || most <= SMALL ? 0 : PANEL_COLUMNS * NAMED(panel_pitch)(rows);
    const int64_t most_turned = rows < WHOLE ? rows : WHOLE;
    const int64_t turned = PARTS == 2 || rows <= BLOCK ? 0 : most_turned * NAMED(panel_pitch)(most_turned);
    const size_t parts = (size_t)(packed + panel + turned) * sizeof(R);
    char *memory = eshkol_scratch_take(parts + (size_t)matrix * sizeof(T) + (size_t)order * 8 + 64);
    if (memory == NULL) {
        eshkol_linear_fault(linear, ESHKOL_LINEAR_NO_MEMORY);
        return NULL;
    }
    work->pool = linear->pool == NULL ? NULL : *linear->pool;
    work->packed = packed == 0 ? NULL : (R *)(memory + (size_t)matrix * sizeof(T) + (size_t)order * 8);
    work->panel = packed == 0 ? NULL : work->packed + packed;
    work->turned = turned == 0 ? NULL : work->panel + panel;
    return memory;
}

static const T *NAMED(operand)(const EshkolLinear *linear, int operand, int64_t number, int64_t size)
{
    return (const T *)linear->in[operand] + eshkol_linear_place(linear, operand, number) * size;
}

/* --- the functions ------------------------------------------------------------------------------------------------ */

static int NAMED(is_identity)(const T *b, int64_t n)
{
    const R *parts = (const R *)b;
    for (int64_t i = 0; i < n; i++, parts += n * PARTS) {
        int others = parts[i * PARTS] != 1 ? 2 : 0; /* that are not 0, with that of the diagonal */
        for (int64_t j = 0; j < n * PARTS; j++)
            others += parts[j] != 0;
        if (others != 1)
            return 0;
    }
    return 1;
}

/* The lower triangle of b, which is the identity, becomes the inverse of a lower triangle. */
static void NAMED(invert)(const NAMED(Work) *work, int64_t n, NAMED(Triangle) t, T *b, int64_t b_row)
{
    if (n <= BLOCK) {
        NAMED(under)(work, n, t, b, n, b_row);
        return;
    }
    const int64_t half = (n / 2 + LEAF - 1) / LEAF * LEAF, rest = n - half;
    NAMED(Triangle) second = t;
    second.at = t.at + half * (t.row + t.column);
    NAMED(invert)(work, half, t, b, b_row);
    NAMED(subtract)(work, (NAMED(Product)){
        .a = t.at + half * t.row, .b = b, .c = b + half * b_row, .rows = rest, .columns = half, .depth = half,
        .a_row = t.row, .a_column = t.column, .b_row = b_row, .b_column = 1, .c_row = b_row,
    });
    NAMED(under)(work, rest, second, b + half * b_row, half, b_row);
    NAMED(invert)(work, rest, second, b + half * (b_row + 1), b_row);
}

/* out becomes the inverse of a matrix, of which f are the factors: that of L, and then with U as any other matrix, all
   of which with columns in the order of rows. */
static void NAMED(invert_factored)(const NAMED(Work) *work, const NAMED(Factors) *f, T *out, T *row)
{
    const int64_t n = f->rows;
#if PARTS == 1
    if (n <= WHOLE) {
        R corners[2][CORNERS(WHOLE)][STRIP][STRIP];
        NAMED(Inverse) inverse = {
            .lower = NAMED(system)(n, (NAMED(Triangle)){f->at, n, 1, 1, 1}, corners[0]),
            .upper = NAMED(system)(n, (NAMED(Triangle)){f->at, n, 1, 0, 0}, corners[1]), .order = f->order, .out = out,
        };
        const int64_t together = PANELS_TOGETHER * WIDTH, tasks = (n + together - 1) / together;
        const int shared = work->pool != NULL && tasks > 1 && n * n * n / 2 >= WORTH;
        if (!shared || eshkol_parallel_for(work->pool, NAMED(invert_panels), &inverse, tasks, 1) != 0)
            NAMED(invert_panels)(&inverse, 0, tasks);
        return;
    }
#endif
    NAMED(invert)(work, n, (NAMED(Triangle)){f->at, n, 1, 1, 1}, out, n);
    NAMED(under)(work, n, (NAMED(Triangle)){f->at, n, 1, 0, 0}, out, n, n);
    for (int64_t i = 0; i < n; i++) {
        memcpy(row, out + i * n, (size_t)n * sizeof(T));
        for (int64_t j = 0; j < n; j++)
            out[i * n + f->order[j]] = row[j];
    }
}

static void NAMED(solve)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows, columns = linear->columns;
    NAMED(Work) work;
    int64_t *order = NAMED(prepared)(linear, &work, n * n + n, n);
    if (order == NULL)
        return;
    NAMED(Factors) f = {(T *)(order + n), n, n, order, NULL, 0, 0};
    for (int64_t number = begin; number < end; number++) {
        const T *b = NAMED(operand)(linear, 1, number, n * columns);
        T *out = (T *)linear->out[0] + number * n * columns;
        memcpy(f.at, NAMED(operand)(linear, 0, number, n * n), (size_t)(n * n) * sizeof(T));
        f.singular = 0;
        NAMED(factor)(&work, &f);
        if (f.singular) {
            eshkol_linear_fault(linear, (uint64_t)number);
            continue;
        }
        if (columns == n && n > SMALL && NAMED(is_identity)(b, n)) {
            memcpy(out, b, (size_t)(n * n) * sizeof(T));
            NAMED(invert_factored)(&work, &f, out, f.at + n * n);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            memcpy(out + i * columns, b + order[i] * columns, (size_t)columns * sizeof(T));
        NAMED(under)(&work, n, (NAMED(Triangle)){f.at, n, 1, 1, 1}, out, columns, columns);
        NAMED(under)(&work, n, (NAMED(Triangle)){f.at, n, 1, 0, 0}, out, columns, columns);
    }
    eshkol_scratch_give(order);
}

static void NAMED(factored)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows, columns = linear->columns;
    const int turned = (linear->flags & ESHKOL_FACTORED_TRANSPOSE) != 0;
    NAMED(Work) work;
    T *kept = NAMED(prepared)(linear, &work, turned ? n * columns : 0, 0);
    if (kept == NULL)
        return;
    for (int64_t number = begin; number < end; number++) {
        const T *factors = NAMED(operand)(linear, 0, number, n * n);
        const T *b = NAMED(operand)(linear, 1, number, n * columns);
        const int64_t *order = (const int64_t *)linear->in[2] + eshkol_linear_place(linear, 0, number) * n;
        T *out = (T *)linear->out[0] + number * n * columns, *found = turned ? kept : out;
        int64_t whole = 0;
        while (whole < n && NAMED(size)(factors[whole * (n + 1)]) != 0)
            whole++;
        if (whole < n) {
            eshkol_linear_fault(linear, (uint64_t)number);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            memcpy(found + i * columns, b + (turned ? i : order[i]) * columns, (size_t)columns * sizeof(T));
        const int64_t row = turned ? 1 : n, column = turned ? n : 1;
        const NAMED(Triangle) lower = {factors, row, column, !turned, 1}, upper = {factors, row, column, turned, 0};
        NAMED(under)(&work, n, turned ? upper : lower, found, columns, columns);
        NAMED(under)(&work, n, turned ? lower : upper, found, columns, columns);
        for (int64_t i = 0; i < n && turned; i++)
            memcpy(out + order[i] * columns, found + i * columns, (size_t)columns * sizeof(T));
    }
    eshkol_scratch_give(kept);
}

static void NAMED(triangle)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows, columns = linear->columns;
    const int turned = (linear->flags & ESHKOL_TRIANGLE_TRANSPOSE) != 0;
    const int unit = (linear->flags & ESHKOL_TRIANGLE_UNIT) != 0;
    const int lower = (linear->flags & ESHKOL_TRIANGLE_LOWER) != 0;
    NAMED(Work) work;
    void *memory = NAMED(prepared)(linear, &work, 0, 0);
    if (memory == NULL)
        return;
    for (int64_t number = begin; number < end; number++) {
        const T *x = NAMED(operand)(linear, 0, number, n * n);
        T *out = (T *)linear->out[0] + number * n * columns;
        int64_t i = 0;
        while (i < n && (unit || NAMED(size)(x[i * (n + 1)]) != 0))
            i++;
        if (i < n) {
            eshkol_linear_fault(linear, (uint64_t)(number * n + i));
            continue;
        }
        const T *b = NAMED(operand)(linear, 1, number, n * columns);
        NAMED(Triangle) t = {x, turned ? 1 : n, turned ? n : 1, lower != turned, unit};
#if PARTS == 1
        if (NAMED(at_once)(n, columns)) {
            NAMED(solve_block)(&work, n, t, b, columns, out, columns, columns);
            continue;
        }
#endif
        memcpy(out, b, (size_t)(n * columns) * sizeof(T));
        NAMED(under)(&work, n, t, out, columns, columns);
    }
    eshkol_scratch_give(memory);
}

/* Factors of matrices begin … end - 1 in memory that is used again, and something told of each. */
static void NAMED(told)(EshkolLinear *linear, int64_t begin, int64_t end,
                        void (*tell)(EshkolLinear *linear, const NAMED(Factors) *f, int64_t number))
{
    const int64_t n = linear->rows;
    NAMED(Work) work;
    int64_t *order = NAMED(prepared)(linear, &work, n * n, n);
    if (order == NULL)
        return;
    for (int64_t number = begin; number < end; number++) {
        NAMED(Factors) f = {(T *)(order + n), n, n, order, NULL, 0, 0};
        memcpy(f.at, NAMED(operand)(linear, 0, number, n * n), (size_t)(n * n) * sizeof(T));
        NAMED(factor)(&work, &f);
        tell(linear, &f, number);
    }
    eshkol_scratch_give(order);
}

/* A product that neither becomes too large nor too small on the way. */
static void NAMED(tell_det)(EshkolLinear *linear, const NAMED(Factors) *f, int64_t number)
{
    T *out = (T *)linear->out[0] + number;
    double re = f->swaps % 2 ? -1 : 1, im = 0;
    int64_t exponent = 0;
    for (int64_t i = 0; i < f->rows; i++) {
        const T d = f->at[i * (f->rows + 1)];
        int by = 0;
#if PARTS == 1
        re *= (double)d;
        const double size = fabs(re);
#else
        const double before = re;
        re = before * (double)d.re - im * (double)d.im;
        im = before * (double)d.im + im * (double)d.re;
        const double size = fmax(fabs(re), fabs(im));
#endif
        if (size > 0 && isfinite(size)) {
            frexp(size, &by);
            re = ldexp(re, -by);
            im = ldexp(im, -by);
            exponent += by;
        }
    }
    const int by = exponent > 100000 ? 100000 : exponent < -100000 ? -100000 : (int)exponent;
#if PARTS == 1
    (void)im;
    *out = f->singular ? 0 : (R)ldexp(re, by);
#else
    *out = f->singular ? NAMED(of)(0) : (T){(R)ldexp(re, by), (R)ldexp(im, by)};
#endif
}

static void NAMED(tell_slogdet)(EshkolLinear *linear, const NAMED(Factors) *f, int64_t number)
{
    T *sign = (T *)linear->out[0] + number;
    R *out = (R *)linear->out[1] + number;
    double re = f->swaps % 2 ? -1 : 1, sum = 0;
#if PARTS == 2
    double im = 0;
#endif
    for (int64_t i = 0; i < f->rows; i++) {
        const T d = f->at[i * (f->rows + 1)];
#if PARTS == 1
        re = d < 0 ? -re : re;
        sum += log(fabs((double)d));
#else
        const double size = hypot((double)d.re, (double)d.im), x = (double)d.re / size, y = (double)d.im / size;
        const double before = re;
        re = before * x - im * y;
        im = before * y + im * x;
        sum += log(size);
#endif
    }
    *out = f->singular ? (R)-INFINITY : (R)sum;
#if PARTS == 1
    *sign = f->singular ? 0 : (R)re;
#else
    *sign = f->singular ? NAMED(of)(0) : (T){(R)re, (R)im};
#endif
}

static void NAMED(det)(void *context, int64_t begin, int64_t end)
{
    NAMED(told)(context, begin, end, NAMED(tell_det));
}

static void NAMED(slogdet)(void *context, int64_t begin, int64_t end)
{
    NAMED(told)(context, begin, end, NAMED(tell_slogdet));
}

static void NAMED(lu)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t rows = linear->rows, columns = linear->columns, size = rows * columns;
    NAMED(Work) work;
    void *memory = NAMED(prepared)(linear, &work, 0, 0);
    if (memory == NULL)
        return;
    for (int64_t number = begin; number < end; number++) {
        T *out = (T *)linear->out[0] + number * size;
        int32_t *pivots = (int32_t *)linear->out[1] + number * (rows < columns ? rows : columns);
        NAMED(Factors) f = {out, rows, columns, (int64_t *)linear->out[2] + number * rows, pivots, 0, 0};
        memcpy(out, NAMED(operand)(linear, 0, number, size), (size_t)size * sizeof(T));
        NAMED(factor)(&work, &f);
    }
    eshkol_scratch_give(memory);
}
