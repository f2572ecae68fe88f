/* Eigenvalues and singular values of one dtype, as the functions of linear.h; as factors.h, included by kinds.h. LAPACK
   computes them, by the address that the record holds, except for what jacobi.h does. It reads matrices column by
   column: what lies row by row is a transpose to it, so that the singular vectors of that are those which are wanted,
   in the order in which they are wanted. Here vectors get their signs and phases, too. */

typedef struct {
    R re, im;
} NAMED(Pair);

/* Memory to work in, for a function of LAPACK. */
typedef struct {
    void *function;
    char *memory;
    T *matrix; /* destroyed by each call */
    T *vectors, *others;
    R *values;
    T *work;
    R *reals;
    int32_t *integers;
    int32_t lwork, lreals, lintegers;
} NAMED(Spectrum);

static int NAMED(finite)(const T *x, int64_t count)
{
    const R *parts = (const R *)x;
    const R most = sizeof(R) == 4 ? (R)FLT_MAX : (R)DBL_MAX;
    int wrong = 0;
    for (int64_t i = 0; i < count * PARTS; i++)
        wrong |= !(ABSOLUTE(parts[i]) <= most);
    return !wrong;
}

static R NAMED(modulus)(T a)
{
#if PARTS == 1
    return ABSOLUTE(a);
#else
    return (R)hypot((double)a.re, (double)a.im);
#endif
}

/* The first of n numbers whose modulus is at least half of the greatest, and what makes it real and positive. */
static int64_t NAMED(chosen)(const T *x, int64_t n, int64_t stride, T *phase)
{
    R greatest = 0;
    for (int64_t i = 0; i < n; i++) {
        const R size = NAMED(modulus)(x[i * stride]);
        greatest = size > greatest ? size : greatest;
    }
    int64_t place = 0;
    while (place < n - 1 && !(NAMED(modulus)(x[place * stride]) >= greatest / 2))
        place++;
    const R size = NAMED(modulus)(x[place * stride]);
    *phase = size == 0 ? NAMED(of)(1) : NAMED(scaled)(NAMED(turned)(x[place * stride]), 1 / size);
#if PARTS == 1
    *phase = *phase < 0 ? -1 : 1;
#endif
    return place;
}

/* A count that LAPACK tells as a number, which may have lost its last digits. */
static int32_t NAMED(told_count)(R number) { return (int32_t)((double)number * (1 + 4e-7)) + 1; }

/* --- Hermitian matrices ------------------------------------------------------------------------------------------- */

/* One matrix: values and, unless they are wanted alone, vectors instead of it; what LAPACK says of it. With the matrix
   NULL the memory that it wants is taken down. */
static int32_t NAMED(call_eigh)(NAMED(Spectrum) *s, int32_t n, int alone, T *matrix, R *values)
{
    char job = alone ? 'N' : 'V', upper = 'U';
    int32_t info = 0, lwork = s->lwork, lintegers = s->lintegers, size = n;
    T first = NAMED(of)(0), *work = matrix == NULL ? &first : s->work;
    int32_t count = 0, *integers = matrix == NULL ? &count : s->integers;
    if (matrix == NULL)
        lwork = lintegers = -1;
#if PARTS == 1
    ((void (*)(char *, char *, int32_t *, T *, int32_t *, R *, T *, int32_t *, int32_t *, int32_t *, int32_t *))
         s->function)(&job, &upper, &size, matrix, &size, values, work, &lwork, integers, &lintegers, &info);
#else
    int32_t lreals = matrix == NULL ? -1 : s->lreals;
    R real = 0, *reals = matrix == NULL ? &real : s->reals;
    ((void (*)(char *, char *, int32_t *, T *, int32_t *, R *, T *, int32_t *, R *, int32_t *, int32_t *, int32_t *,
               int32_t *))s->function)(&job, &upper, &size, matrix, &size, values, work, &lwork, reals, &lreals,
                                       integers, &lintegers, &info);
    s->lreals = matrix == NULL ? NAMED(told_count)(real) : s->lreals;
#endif
    if (matrix == NULL) {
        s->lwork = NAMED(told_count)(NAMED(real)(first));
        s->lintegers = count;
    }
    return info;
}

/* The memory for what LAPACK has asked for, beside so many numbers. */
static int NAMED(allotted)(EshkolLinear *linear, NAMED(Spectrum) *s, int64_t matrix, int64_t vectors, int64_t others,
                           int64_t values)
{
    const int64_t numbers = matrix + vectors + others + s->lwork + 1, reals = values + s->lreals + 1;
    s->memory = eshkol_scratch_take((size_t)numbers * sizeof(T) + (size_t)reals * sizeof(R)
                                    + (size_t)(s->lintegers + 1) * 4);
    if (s->memory == NULL) {
        eshkol_linear_fault(linear, ESHKOL_LINEAR_NO_MEMORY);
        return 0;
    }
    s->matrix = (T *)s->memory;
    s->vectors = s->matrix + matrix;
    s->others = s->vectors + vectors;
    s->work = s->others + others;
    s->values = (R *)(s->work + s->lwork + 1);
    s->reals = s->values + values;
    s->integers = (int32_t *)(s->reals + s->lreals + 1);
    return 1;
}

static void NAMED(eigh)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows;
    const int alone = (linear->flags & ESHKOL_SPECTRUM_ALONE) != 0;
#if PARTS == 1
    if (NAMED(rotated_together)(linear, n)) {
        NAMED(eigh_side_by_side)(linear, begin, end);
        return;
    }
#endif
    NAMED(Spectrum) s = {.function = linear->lapack};
    NAMED(call_eigh)(&s, (int32_t)n, alone, NULL, NULL);
    if (!NAMED(allotted)(linear, &s, n * n, 0, 0, 0))
        return;
    eshkol_linear_alone(linear, 1);
    for (int64_t number = begin; number < end; number++) {
        const T *x = NAMED(operand)(linear, 0, number, n * n);
        if (!NAMED(finite)(x, n * n)) {
            eshkol_linear_fault(linear, (uint64_t)number * 2);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) /* as columns, the upper triangle */
                s.matrix[i * n + j] = NAMED(mean)(x[j * n + i], NAMED(turned)(x[i * n + j]));
        if (NAMED(call_eigh)(&s, (int32_t)n, alone, s.matrix, (R *)linear->out[0] + number * n) != 0) {
            eshkol_linear_fault(linear, (uint64_t)number * 2 + 1);
            continue;
        }
        if (!alone)
            NAMED(settled)(linear, number, n, s.matrix, 1, NULL);
    }
    eshkol_linear_alone(linear, 0);
    eshkol_scratch_give(s.memory);
}

/* --- singular values ---------------------------------------------------------------------------------------------- */

/* As call_eigh, of the transpose of rows × columns: vectors (of rows) and others as they are wanted, row by row. */
static int32_t NAMED(call_svd)(NAMED(Spectrum) *s, char job, int32_t rows, int32_t columns, T *matrix, R *values,
                               T *vectors, T *others)
{
    const int32_t least = rows < columns ? rows : columns;
    int32_t info = 0, lwork = matrix == NULL ? -1 : s->lwork, m = columns, n = rows;
    int32_t high = job == 'A' ? rows : least;
    T first = NAMED(of)(0), *work = matrix == NULL ? &first : s->work;
#if PARTS == 1
    ((void (*)(char *, int32_t *, int32_t *, T *, int32_t *, R *, T *, int32_t *, T *, int32_t *, T *, int32_t *,
               int32_t *, int32_t *))s->function)(&job, &m, &n, matrix, &m, values, others, &m, vectors, &high, work,
                                                  &lwork, s->integers, &info);
#else
    ((void (*)(char *, int32_t *, int32_t *, T *, int32_t *, R *, T *, int32_t *, T *, int32_t *, T *, int32_t *, R *,
               int32_t *, int32_t *))s->function)(&job, &m, &n, matrix, &m, values, others, &m, vectors, &high, work,
                                                  &lwork, s->reals, s->integers, &info);
#endif
    if (matrix == NULL) {
        const int64_t most = rows < columns ? columns : rows, square = (int64_t)least * least;
        s->lwork = NAMED(told_count)(NAMED(real)(first));
        s->lreals = (int32_t)(PARTS == 1 ? 0 : 7 * square + 2 * most * least + 7 * least);
        s->lintegers = 8 * least;
    }
    return info;
}

/* Signs and phases of the vectors of a matrix, in place. */
static void NAMED(phased)(EshkolLinear *linear, int64_t number, T *u, int64_t stride, T *vh)
{
    const int64_t rows = linear->rows, columns = linear->columns, least = rows < columns ? rows : columns;
    int64_t *pivots = (int64_t *)linear->out[3] + number * least;
    for (int64_t k = 0; k < least; k++) {
        T phase;
        pivots[k] = NAMED(chosen)(u + k, rows, stride, &phase);
        const T other = NAMED(turned)(phase);
        for (int64_t i = 0; i < rows; i++)
            u[i * stride + k] = NAMED(times)(u[i * stride + k], phase);
        for (int64_t j = 0; j < columns; j++)
            vh[k * columns + j] = NAMED(times)(vh[k * columns + j], other);
    }
}

static void NAMED(svd)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t rows = linear->rows, columns = linear->columns, least = rows < columns ? rows : columns;
    const int alone = (linear->flags & ESHKOL_SPECTRUM_ALONE) != 0, whole = (linear->flags & ESHKOL_SVD_WHOLE) != 0;
    const int64_t high = whole ? rows : least, wide = whole ? columns : least;
    NAMED(Spectrum) s = {.function = linear->lapack};
    NAMED(call_svd)(&s, alone ? 'N' : whole ? 'A' : 'S', (int32_t)rows, (int32_t)columns, NULL, NULL, NULL, NULL);
    if (!NAMED(allotted)(linear, &s, rows * columns, 0, 0, 0))
        return;
    eshkol_linear_alone(linear, 1);
#if PARTS == 1
    const int together = !whole && NAMED(rotated_together)(linear, rows < columns ? columns : rows);
#endif
    for (int64_t number = begin; number < end; number++) {
#if PARTS == 1
        if (together && (number - begin) % LANES == 0)
            NAMED(svd_side_by_side)(linear, number, number + LANES < end ? number + LANES : end);
        R *known = (R *)linear->out[alone ? 0 : 1] + number * least;
        if (together && known[0] >= 0)
            continue;
#endif
        const T *x = NAMED(operand)(linear, 0, number, rows * columns);
        if (!NAMED(finite)(x, rows * columns)) {
            eshkol_linear_fault(linear, (uint64_t)number * 2);
            continue;
        }
        memcpy(s.matrix, x, (size_t)(rows * columns) * sizeof(T));
        R *values = (R *)linear->out[alone ? 0 : 1] + number * least;
        T *u = alone ? NULL : (T *)linear->out[0] + number * rows * high;
        T *vh = alone ? NULL : (T *)linear->out[2] + number * wide * columns;
        if (NAMED(call_svd)(&s, alone ? 'N' : whole ? 'A' : 'S', (int32_t)rows, (int32_t)columns, s.matrix, values, u,
                            vh) != 0) {
            eshkol_linear_fault(linear, (uint64_t)number * 2 + 1);
            continue;
        }
        if (!alone)
            NAMED(phased)(linear, number, u, high, vh);
    }
    eshkol_linear_alone(linear, 0);
    eshkol_scratch_give(s.memory);
}

/* --- eigenvalues of any matrix ------------------------------------------------------------------------------------ */

static int32_t NAMED(call_eig)(NAMED(Spectrum) *s, int32_t n, int alone, T *matrix, NAMED(Pair) *values)
{
    char none = 'N', job = alone ? 'N' : 'V';
    int32_t info = 0, lwork = matrix == NULL ? -1 : s->lwork, size = n, one = 1;
    T first = NAMED(of)(0), spare = first, *work = matrix == NULL ? &first : s->work;
    T *vectors = matrix == NULL ? &spare : s->vectors;
#if PARTS == 1
    R *re = matrix == NULL ? &spare : s->values, *im = matrix == NULL ? &spare : s->values + n;
    ((void (*)(char *, char *, int32_t *, T *, int32_t *, R *, R *, T *, int32_t *, T *, int32_t *, T *, int32_t *,
               int32_t *))s->function)(&none, &job, &size, matrix, &size, re, im, &spare, &one, vectors, &size, work,
                                       &lwork, &info);
    for (int64_t k = 0; k < n && matrix != NULL; k++)
        values[k] = (NAMED(Pair)){re[k], im[k]};
#else
    R real = 0; /* is written even where only the memory is asked for */
    ((void (*)(char *, char *, int32_t *, T *, int32_t *, void *, T *, int32_t *, T *, int32_t *, T *, int32_t *, R *,
               int32_t *))s->function)(&none, &job, &size, matrix, &size, values, &spare, &one, vectors, &size, work,
                                       &lwork, matrix == NULL ? &real : s->reals, &info);
    s->lreals = 2 * n;
#endif
    s->lwork = matrix == NULL ? NAMED(told_count)(NAMED(real)(first)) : s->lwork;
    return info;
}

static R NAMED(length)(NAMED(Pair) a) { return (R)hypot((double)a.re, (double)a.im); }

/* The vectors of a matrix into its columns: of a real one, a pair of values has its vector as two of real numbers. */
static void NAMED(general)(EshkolLinear *linear, int64_t number, int64_t n, const T *vectors)
{
#if PARTS == 1
    const NAMED(Pair) *values = (const NAMED(Pair) *)linear->out[0] + number * n;
#endif
    NAMED(Pair) *out = (NAMED(Pair) *)linear->out[1] + number * n * n;
    int64_t *pivots = (int64_t *)linear->out[2] + number * n;
    for (int64_t k = 0; k < n; k++) {
        const T *x = vectors + k * n;
        R greatest = 0;
        for (int64_t i = 0; i < n; i++) {
#if PARTS == 1
            const int second = values[k].im < 0 && k > 0; /* of a pair: the conjugate of the one before */
            const NAMED(Pair) z = values[k].im == 0 ? (NAMED(Pair)){x[i], 0}
                : second ? (NAMED(Pair)){x[i - n], -x[i]} : k + 1 < n ? (NAMED(Pair)){x[i], x[i + n]}
                : (NAMED(Pair)){x[i], 0};
#else
            const NAMED(Pair) z = {x[i].re, x[i].im};
#endif
            const R size = NAMED(length)(z);
            greatest = size > greatest ? size : greatest;
            out[i * n + k] = z;
        }
        int64_t place = 0;
        while (place < n - 1 && !(NAMED(length)(out[place * n + k]) >= greatest / 2))
            place++;
        pivots[k] = place;
        const NAMED(Pair) at = out[place * n + k];
        const R size = NAMED(length)(at), re = size == 0 ? 1 : at.re / size, im = size == 0 ? 0 : -at.im / size;
        for (int64_t i = 0; i < n; i++) {
            const NAMED(Pair) z = out[i * n + k];
            out[i * n + k] = (NAMED(Pair)){z.re * re - z.im * im, z.re * im + z.im * re};
        }
    }
}

static void NAMED(eig)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows;
    const int alone = (linear->flags & ESHKOL_SPECTRUM_ALONE) != 0;
    NAMED(Spectrum) s = {.function = linear->lapack};
    NAMED(call_eig)(&s, (int32_t)n, alone, NULL, NULL);
    if (!NAMED(allotted)(linear, &s, n * n, alone ? 1 : n * n, 0, 2 * n))
        return;
    eshkol_linear_alone(linear, 1);
    for (int64_t number = begin; number < end; number++) {
        const T *x = NAMED(operand)(linear, 0, number, n * n);
        if (!NAMED(finite)(x, n * n)) {
            eshkol_linear_fault(linear, (uint64_t)number * 2);
            continue;
        }
        /* Where LAPACK itself scales a matrix, some of its builds forget to scale the values back. */
        const R scale = NAMED(scale)((const R *)x, n * n * PARTS);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                s.matrix[i * n + j] = NAMED(scaled)(x[j * n + i], 1 / scale);
        NAMED(Pair) *values = (NAMED(Pair) *)linear->out[0] + number * n;
        const int32_t info = NAMED(call_eig)(&s, (int32_t)n, alone, s.matrix, values);
        for (int64_t k = 0; k < n; k++)
            values[k] = (NAMED(Pair)){values[k].re * scale, values[k].im * scale};
        if (info != 0)
            eshkol_linear_fault(linear, (uint64_t)number * 2 + 1);
        else if (!alone)
            NAMED(general)(linear, number, n, s.vectors);
    }
    eshkol_linear_alone(linear, 0);
    eshkol_scratch_give(s.memory);
}
