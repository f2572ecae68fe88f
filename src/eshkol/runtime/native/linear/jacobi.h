/* Eigenvalues and singular values of small real matrices, by Jacobi's rotations: as many matrices at once as a register
   has lanes, each number of a matrix beside those of the others. Included by kinds.h before spectra.h, which takes the
   matrices that are too large for it, and those whose vectors rotations do not give. */

/* --- what becomes of vectors -------------------------------------------------------------------------------------- */

static int64_t NAMED(chosen)(const T *x, int64_t n, int64_t stride, T *phase);

/* Eigenvectors of matrix `number`, which lie as rows with numbers `apart`, into its columns: with their signs and
   phases, in an order unless that is NULL. */
static void NAMED(settled)(EshkolLinear *linear, int64_t number, int64_t n, const T *vectors, int64_t apart,
                           const int64_t *order)
{
    T *out = (T *)linear->out[1] + number * n * n;
    int64_t *pivots = (int64_t *)linear->out[2] + number * n;
    for (int64_t k = 0; k < n; k++) {
        const T *x = vectors + (order == NULL ? k : order[k]) * n * apart;
        T phase;
        pivots[k] = NAMED(chosen)(x, n, apart, &phase);
        for (int64_t i = 0; i < n; i++)
            out[i * n + k] = NAMED(times)(x[i * apart], phase);
    }
}

/* By which power of 2 numbers are divided so that none is large; 0 where some are not finite. */
static R NAMED(scale)(const R *x, int64_t count)
{
    const NAMED(Size) infinite = {(R)INFINITY};
    NAMED(Size) greatest = {0};
    for (int64_t i = 0; i < count; i++) {
        const NAMED(Size) size = {ABSOLUTE(x[i])};
        greatest.bits = size.bits > greatest.bits ? size.bits : greatest.bits;
    }
    int exponent = 0;
    if (greatest.bits >= infinite.bits)
        return 0;
    frexp((double)greatest.number, &exponent);
    const int least = sizeof(R) == 4 ? -100 : -1000; /* the inverse is finite, too */
    exponent = exponent < least ? least : exponent;
    return greatest.number == 0 ? 1 : (R)ldexp(1, exponent);
}

#if PARTS == 1

#define EPSILON (sizeof(R) == 4 ? (R)FLT_EPSILON : (R)DBL_EPSILON)

static inline NAMED(Vector) NAMED(rooted)(NAMED(Vector) x)
{
    NAMED(Vector) found;
    UNROLL
    for (int lane = 0; lane < (int)LANES; lane++)
        found[lane] = ROOT(x[lane]);
    return found;
}

/* Two numbers are turned by an angle with a cosine and a sine. */
static inline void NAMED(turn)(NAMED(Vector) *a, NAMED(Vector) *b, NAMED(Vector) cosine, NAMED(Vector) sine)
{
    const NAMED(Vector) x = *a, y = *b;
    *a = cosine * x - sine * y;
    *b = sine * x + cosine * y;
}

/* The tangent of the angle that makes `off` 0, where `apart` is what the numbers of the diagonal differ by. */
static inline NAMED(Vector) NAMED(tangent)(NAMED(Vector) apart, NAMED(Vector) off)
{
    const NAMED(Vector) zero = {0}, twice = off + off;
    const NAMED(Mask) negative = apart < zero;
    const NAMED(Vector) whole = NAMED(either)(negative, -apart, apart) + NAMED(rooted)(apart * apart + twice * twice);
    const NAMED(Vector) found = NAMED(either)(negative, -twice, twice) / whole;
    return NAMED(either)(whole > zero, found, zero);
}

/* The order in which numbers, which lie `apart`, rise (or fall). */
static void NAMED(ordered)(int64_t n, const R *values, int64_t apart, int falling, int64_t *order)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k;
        const R value = values[k * apart];
        for (; at > 0; at--) {
            const R before = values[order[at - 1] * apart];
            if (falling ? before >= value : before <= value)
                break;
            order[at] = order[at - 1];
        }
        order[at] = k;
    }
}

/* Whether matrices of so many rows or columns are worked on side by side: the shape alone says so. */
static int NAMED(rotated_together)(const EshkolLinear *linear, int64_t most)
{
    int64_t count = 1;
    for (int64_t k = 0; k < linear->rank; k++)
        count *= linear->batch[k].extent;
    return most <= JACOBI || (most <= JACOBI_MOST && 2 * count >= LANES);
}

/* --- symmetric matrices ------------------------------------------------------------------------------------------- */

/* Rotations until the upper triangles are diagonal, which also turn the vectors unless they are NULL; 0 if never. */
static int NAMED(diagonal)(int64_t n, NAMED(Vector) *a, NAMED(Vector) *v)
{
    NAMED(Vector) squares = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            squares += a[i * n + j] * a[i * n + j];
    const NAMED(Vector) bound = NAMED(rooted)(squares) * (EPSILON / (R)(4 * n));
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int left = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                const NAMED(Vector) off = a[p * n + q];
                int large = 0;
                UNROLL
                for (int lane = 0; lane < (int)LANES; lane++)
                    large |= ABSOLUTE(off[lane]) > bound[lane];
                if (!large)
                    continue;
                left = 1;
                const NAMED(Vector) t = NAMED(tangent)(a[q * (n + 1)] - a[p * (n + 1)], off);
                const NAMED(Vector) cosine = (R)1 / NAMED(rooted)((R)1 + t * t), sine = t * cosine;
                a[p * (n + 1)] -= t * off;
                a[q * (n + 1)] += t * off;
                a[p * n + q] = (NAMED(Vector)){0};
                for (int64_t k = 0; k < p; k++)
                    NAMED(turn)(&a[k * n + p], &a[k * n + q], cosine, sine);
                for (int64_t k = p + 1; k < q; k++)
                    NAMED(turn)(&a[p * n + k], &a[k * n + q], cosine, sine);
                for (int64_t k = q + 1; k < n; k++)
                    NAMED(turn)(&a[p * n + k], &a[q * n + k], cosine, sine);
                for (int64_t k = 0; k < n && v != NULL; k++)
                    NAMED(turn)(&v[p * n + k], &v[q * n + k], cosine, sine);
            }
        if (!left)
            return 1;
    }
    return 0;
}

/* Matrices begin … end - 1, of at most JACOBI_MOST rows. */
static void NAMED(eigh_side_by_side)(EshkolLinear *linear, int64_t begin, int64_t end)
{
    const int64_t n = linear->rows;
    const int alone = (linear->flags & ESHKOL_SPECTRUM_ALONE) != 0;
    NAMED(Vector) a[JACOBI_MOST * JACOBI_MOST], v[JACOBI_MOST * JACOBI_MOST];
    int64_t order[JACOBI_MOST];
    for (int64_t first = begin; first < end; first += LANES) {
        R scales[VECTOR / sizeof(R)];
        for (int64_t lane = 0; lane < LANES; lane++) { /* beyond the last: that again */
            const int64_t number = first + lane < end ? first + lane : end - 1;
            const T *x = NAMED(operand)(linear, 0, number, n * n);
            scales[lane] = NAMED(scale)(x, n * n);
            const R by = scales[lane] == 0 ? 0 : 1 / scales[lane];
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = i; j < n; j++)
                    a[i * n + j][lane] = by == 0 ? 0 : x[i * n + j] * by / 2 + x[j * n + i] * by / 2;
        }
        memset(v, 0, (size_t)(n * n) * sizeof *v);
        for (int64_t i = 0; i < n; i++)
            v[i * (n + 1)] = (NAMED(Vector)){0} + (R)1;
        const int found = NAMED(diagonal)(n, a, alone ? NULL : v);
        for (int64_t lane = 0; lane < LANES && first + lane < end; lane++) {
            const int64_t number = first + lane;
            if (!found || scales[lane] == 0) {
                eshkol_linear_fault(linear, (uint64_t)number * 2 + (scales[lane] == 0 ? 0 : 1));
                continue;
            }
            const R *values = (const R *)a + lane;
            NAMED(ordered)(n, values, (n + 1) * LANES, 0, order);
            for (int64_t k = 0; k < n; k++)
                ((R *)linear->out[0])[number * n + k] = values[order[k] * (n + 1) * LANES] * scales[lane];
            if (!alone)
                NAMED(settled)(linear, number, n, (const R *)v + lane, LANES, order);
        }
    }
}

/* --- singular values ---------------------------------------------------------------------------------------------- */

/* Rotations until n rows g of m numbers are at right angles, which also turn those of v unless it is NULL; which lanes
   are done. */
static int NAMED(apart)(int64_t m, int64_t n, NAMED(Vector) *g, NAMED(Vector) *v)
{
    const R bound = EPSILON * (m <= JACOBI ? 4 : 10); /* more than what products of m numbers are wrong by */
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int left = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                NAMED(Vector) one = {0}, other = {0}, both = {0}, *x = g + p * m, *y = g + q * m;
                for (int64_t i = 0; i < m; i++) {
                    one += x[i] * x[i];
                    other += y[i] * y[i];
                    both += x[i] * y[i];
                }
                const NAMED(Vector) most = NAMED(rooted)(one) * NAMED(rooted)(other) * bound;
                int large = 0;
                UNROLL
                for (int lane = 0; lane < (int)LANES; lane++)
                    large |= ABSOLUTE(both[lane]) > most[lane];
                if (!large)
                    continue;
                left = 1;
                const NAMED(Vector) t = NAMED(tangent)(other - one, both);
                const NAMED(Vector) cosine = (R)1 / NAMED(rooted)((R)1 + t * t), sine = t * cosine;
                for (int64_t i = 0; i < m; i++)
                    NAMED(turn)(&x[i], &y[i], cosine, sine);
                for (int64_t i = 0; i < n && v != NULL; i++)
                    NAMED(turn)(&v[p * n + i], &v[q * n + i], cosine, sine);
            }
        if (!left)
            return 1;
    }
    return 0;
}

/* Matrices begin … end - 1, which are at most LANES. The first singular value of one that was not found, or that has
   vectors without one, is -1. */
static void NAMED(svd_side_by_side)(EshkolLinear *linear, int64_t begin, int64_t end)
{
    const int64_t rows = linear->rows, columns = linear->columns, wide = columns > rows;
    const int64_t n = wide ? rows : columns, m = wide ? columns : rows; /* n vectors of m numbers */
    const int alone = (linear->flags & ESHKOL_SPECTRUM_ALONE) != 0;
    NAMED(Vector) g[JACOBI_MOST * JACOBI_MOST], v[JACOBI_MOST * JACOBI_MOST];
    R scales[VECTOR / sizeof(R)];
    for (int64_t lane = 0; lane < LANES; lane++) {
        const T *x = NAMED(operand)(linear, 0, begin + lane < end ? begin + lane : end - 1, rows * columns);
        scales[lane] = NAMED(scale)(x, rows * columns);
        const R by = scales[lane] == 0 ? 0 : 1 / scales[lane];
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < m; i++)
                g[k * m + i][lane] = by == 0 ? 0 : x[wide ? k * columns + i : i * columns + k] * by;
    }
    memset(v, 0, (size_t)(n * n) * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i * (n + 1)] = (NAMED(Vector)){0} + (R)1;
    const int found = NAMED(apart)(m, n, g, alone ? NULL : v);
    for (int64_t lane = 0; lane < LANES && begin + lane < end; lane++) {
        const int64_t number = begin + lane;
        R *values = (R *)linear->out[alone ? 0 : 1] + number * n, lengths[JACOBI_MOST];
        int64_t order[JACOBI_MOST];
        for (int64_t k = 0; k < n; k++) {
            R squares = 0;
            for (int64_t i = 0; i < m; i++)
                squares += g[k * m + i][lane] * g[k * m + i][lane];
            lengths[k] = ROOT(squares);
        }
        NAMED(ordered)(n, lengths, 1, 1, order);
        if (!found || scales[lane] == 0 || !(lengths[order[n - 1]] > lengths[order[0]] * EPSILON * (R)(16 * m))) {
            values[0] = -1;
            continue;
        }
        for (int64_t k = 0; k < n; k++)
            values[k] = lengths[order[k]] * scales[lane];
        if (alone)
            continue;
        T *u = (T *)linear->out[0] + number * rows * n, *vh = (T *)linear->out[2] + number * n * columns;
        int64_t *pivots = (int64_t *)linear->out[3] + number * n;
        for (int64_t k = 0; k < n; k++) {
            const R *turned = (const R *)(g + order[k] * m) + lane, *with = (const R *)(v + order[k] * n) + lane;
            const R by = 1 / lengths[order[k]];
            T sign;
            pivots[k] = NAMED(chosen)(wide ? with : turned, rows, LANES, &sign);
            for (int64_t i = 0; i < rows; i++)
                u[i * n + k] = sign * (wide ? with[i * LANES] : turned[i * LANES] * by);
            for (int64_t j = 0; j < columns; j++)
                vh[k * columns + j] = sign * (wide ? turned[j * LANES] * by : with[j * LANES]);
        }
    }
}

#undef EPSILON
#endif
