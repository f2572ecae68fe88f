/* Numbers, products and triangles of one dtype, of which factors.h makes the functions of linear.h: R is the type of
   its parts, of which there are PARTS, and every name ends with SUFFIX. Included by kinds.h. Matrices are
   given by where they begin and how many numbers lie between their rows (and between the columns of those that may be
   turned). */

/* --- numbers ------------------------------------------------------------------------------------------------------ */

#if PARTS == 1
typedef R NAMED(Number);

static inline T NAMED(less)(T c, T a, T b) { return c - a * b; }
static inline T NAMED(over)(T a, T b) { return a / b; }
static inline T NAMED(times)(T a, T b) { return a * b; }
static inline T NAMED(turned)(T a) { return a; }
static inline T NAMED(scaled)(T a, R factor) { return a * factor; }
static inline R NAMED(real)(T a) { return a; }
static inline T NAMED(of)(R a) { return a; }
static inline R NAMED(size)(T a) { return ABSOLUTE(a); }
static inline T NAMED(mean)(T a, T b) { return (a + b) / 2; }
#else
typedef struct {
    R re, im;
} NAMED(Number);

static inline T NAMED(less)(T c, T a, T b)
{
    return (T){c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re};
}

static inline T NAMED(times)(T a, T b) { return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/* Scaled, so that no part of the way is larger than the quotient needs. */
static inline T NAMED(over)(T a, T b)
{
    const R re = ABSOLUTE(b.re), im = ABSOLUTE(b.im);
    if (re >= im) {
        const R ratio = b.im / b.re, whole = b.re + b.im * ratio;
        return (T){(a.re + a.im * ratio) / whole, (a.im - a.re * ratio) / whole};
    }
    const R ratio = b.re / b.im, whole = b.re * ratio + b.im;
    return (T){(a.re * ratio + a.im) / whole, (a.im * ratio - a.re) / whole};
}

static inline T NAMED(turned)(T a) { return (T){a.re, -a.im}; }
static inline T NAMED(scaled)(T a, R factor) { return (T){a.re * factor, a.im * factor}; }
static inline R NAMED(real)(T a) { return a.re; }
static inline T NAMED(of)(R a) { return (T){a, 0}; }
static inline R NAMED(size)(T a) { return ABSOLUTE(a.re) + ABSOLUTE(a.im); }
static inline T NAMED(mean)(T a, T b) { return (T){(a.re + b.re) / 2, (a.im + b.im) / 2}; }
#endif

/* --- products ----------------------------------------------------------------------------------------------------- */

typedef R NAMED(Vector) __attribute__((vector_size(VECTOR), aligned(sizeof(R)), may_alias));
typedef __typeof__((NAMED(Vector)){0} < (NAMED(Vector)){0}) NAMED(Mask);

/* Memory to work in, and the threads that may help. */
typedef struct {
    eshkol_scheduler *pool;
    R *packed; /* of matrices that are not small */
} NAMED(Work);

/* c -= a · b, where b (conjugated, if it is to be) lies packed as panels of WIDTH columns; or packed by itself. */
typedef struct {
    const T *a, *b;
    T *c;
    const R *packed;
    int64_t rows, columns, depth;
    int64_t a_row, a_column, b_row, b_column, c_row;
    int conjugate;
} NAMED(Product);

static void NAMED(tile)(int64_t depth, const R *a, const R *b, R *found)
{
    NAMED(Vector) sums[STRIP][VECTORS];
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            sums[r][v] = (NAMED(Vector)){0};
    for (int64_t p = 0; p < depth; p++) {
        NAMED(Vector) row[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            row[v] = *(const NAMED(Vector) *)(b + v * LANES);
#if BY_LANES
        UNROLL
        for (int q = 0; q < (int)(STRIP / LANES); q++) {
            const NAMED(Vector) column = *(const NAMED(Vector) *)(a + q * LANES);
            UNROLL
            for (int lane = 0; lane < (int)LANES; lane++)
                UNROLL
                for (int v = 0; v < VECTORS; v++)
                    sums[q * (int)LANES + lane][v] += column[lane] * row[v];
        }
#else
        UNROLL
        for (int r = 0; r < STRIP; r++)
            UNROLL
            for (int v = 0; v < VECTORS; v++)
                sums[r][v] += a[r] * row[v];
#endif
        a += STRIP;
        b += WIDTH;
    }
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            *(NAMED(Vector) *)(found + r * WIDTH + v * LANES) = sums[r][v];
}

static void NAMED(pack)(const NAMED(Product) *product, R *packed)
{
    for (int64_t first = 0; first < product->columns; first += WIDTH) {
        const int64_t left = product->columns - first, width = left < WIDTH ? left : WIDTH;
        for (int64_t p = 0; p < product->depth; p++, packed += PARTS * WIDTH) {
            const T *from = product->b + p * product->b_row + first * product->b_column;
            memset(packed, 0, (size_t)(PARTS * WIDTH) * sizeof *packed);
            for (int64_t j = 0; j < width; j++) {
#if PARTS == 1
                packed[j] = from[j * product->b_column];
#else
                const T number = from[j * product->b_column];
                packed[j] = number.re;
                packed[WIDTH + j] = product->conjugate ? -number.im : number.im;
#endif
            }
        }
    }
}

/* Strips begin … end - 1 of a product's rows. Complex ones are two products of real numbers, one for each part. */
static void NAMED(strips)(void *context, int64_t begin, int64_t end)
{
    const NAMED(Product) *product = context;
    const int64_t depth = product->depth * PARTS;
    R strip[PARTS][STRIP * DEPTH * PARTS], found[PARTS][STRIP * VECTORS * (VECTOR / sizeof(R))];
    for (int64_t number = begin; number < end; number++) {
        const int64_t first = number * STRIP, left = product->rows - first, rows = left < STRIP ? left : STRIP;
        const T *a = product->a + first * product->a_row;
        T *c = product->c + first * product->c_row;
        if (rows < STRIP)
            memset(strip, 0, sizeof strip);
        for (int64_t p = 0; p < product->depth; p++)
            for (int64_t r = 0; r < rows; r++) {
                const T value = a[r * product->a_row + p * product->a_column];
#if PARTS == 1
                strip[0][p * STRIP + r] = value;
#else
                strip[0][2 * p * STRIP + r] = value.re;
                strip[0][(2 * p + 1) * STRIP + r] = -value.im;
                strip[1][2 * p * STRIP + r] = value.im;
                strip[1][(2 * p + 1) * STRIP + r] = value.re;
#endif
            }
        for (int64_t at = 0; at < product->columns; at += WIDTH) {
            const int64_t over = product->columns - at, width = over < WIDTH ? over : WIDTH;
            for (int part = 0; part < PARTS; part++)
                NAMED(tile)(depth, strip[part], product->packed + at * depth, found[part]);
            for (int64_t r = 0; r < rows; r++) {
                T *row = c + r * product->c_row + at;
#if PARTS == 1
                if (width == WIDTH) { /* so many at once */
                    UNROLL
                    for (int v = 0; v < VECTORS; v++)
                        *(NAMED(Vector) *)(row + v * LANES) -= *(NAMED(Vector) *)(found[0] + r * WIDTH + v * LANES);
                    continue;
                }
#endif
                for (int64_t j = 0; j < width; j++) {
#if PARTS == 1
                    row[j] -= found[0][r * WIDTH + j];
#else
                    row[j].re -= found[0][r * WIDTH + j];
                    row[j].im -= found[1][r * WIDTH + j];
#endif
                }
            }
        }
    }
}

/* The same without packing, for what is small. */
static void NAMED(few)(const NAMED(Product) *product)
{
    for (int64_t i = 0; i < product->rows; i++) {
        T *row = product->c + i * product->c_row;
        for (int64_t p = 0; p < product->depth; p++) {
            const T factor = product->a[i * product->a_row + p * product->a_column];
            const T *b = product->b + p * product->b_row;
            if (product->conjugate)
                for (int64_t j = 0; j < product->columns; j++)
                    row[j] = NAMED(less)(row[j], factor, NAMED(turned)(b[j * product->b_column]));
            else
                for (int64_t j = 0; j < product->columns; j++)
                    row[j] = NAMED(less)(row[j], factor, b[j * product->b_column]);
        }
    }
}

/* c -= a · b; columns of c lie side by side. */
static void NAMED(subtract)(const NAMED(Work) *work, NAMED(Product) product)
{
    const NAMED(Product) all = product;
    if (work->packed == NULL || all.columns < 4 || all.rows * all.columns * all.depth < 512) {
        NAMED(few)(&all);
        return;
    }
    for (int64_t p = 0; p < all.depth; p += DEPTH) {
        product.depth = all.depth - p < DEPTH ? all.depth - p : DEPTH;
        product.a = all.a + p * all.a_column;
        for (int64_t j = 0; j < all.columns; j += BREADTH) {
            product.columns = all.columns - j < BREADTH ? all.columns - j : BREADTH;
            product.b = all.b + p * all.b_row + j * all.b_column;
            product.c = all.c + j;
            product.packed = work->packed;
            NAMED(pack)(&product, work->packed);
            const int64_t strips = (product.rows + STRIP - 1) / STRIP;
            const int shared = work->pool != NULL && product.rows * product.columns * product.depth >= WORTH;
            if (!shared || eshkol_parallel_for(work->pool, NAMED(strips), &product, strips, ROWS_AT_A_TIME) != 0)
                NAMED(strips)(&product, 0, strips);
        }
    }
}

/* --- triangles ---------------------------------------------------------------------------------------------------- */

/* A triangle, perhaps turned. */
typedef struct {
    const T *at;
    int64_t row, column;
    int lower, unit;
} NAMED(Triangle);

/* b (n × columns) becomes what the triangle times it gives b. */
static void NAMED(under)(const NAMED(Work) *work, int64_t n, NAMED(Triangle) t, T *b, int64_t columns, int64_t b_row)
{
    if (n <= LEAF) {
        for (int64_t k = 0; k < n; k++) {
            const int64_t i = t.lower ? k : n - 1 - k;
            T *row = b + i * b_row;
            for (int64_t q = 0; q < k; q++) {
                const int64_t p = t.lower ? q : n - 1 - q;
                const T factor = t.at[i * t.row + p * t.column], *other = b + p * b_row;
                for (int64_t j = 0; j < columns; j++)
                    row[j] = NAMED(less)(row[j], factor, other[j]);
            }
            if (!t.unit) {
                const T divisor = t.at[i * (t.row + t.column)];
                for (int64_t j = 0; j < columns; j++)
                    row[j] = NAMED(over)(row[j], divisor);
            }
        }
        return;
    }
    const int64_t half = (n / 2 + LEAF - 1) / LEAF * LEAF, rest = n - half;
    NAMED(Triangle) second = t;
    second.at = t.at + half * (t.row + t.column);
    NAMED(Product) product = {
        .columns = columns, .a_row = t.row, .a_column = t.column, .b_row = b_row, .b_column = 1, .c_row = b_row,
    };
    if (t.lower) {
        NAMED(under)(work, half, t, b, columns, b_row);
        product.a = t.at + half * t.row, product.b = b, product.c = b + half * b_row;
        product.rows = rest, product.depth = half;
        NAMED(subtract)(work, product);
        NAMED(under)(work, rest, second, b + half * b_row, columns, b_row);
    } else {
        NAMED(under)(work, rest, second, b + half * b_row, columns, b_row);
        product.a = t.at + half * t.column, product.b = b + half * b_row, product.c = b;
        product.rows = half, product.depth = rest;
        NAMED(subtract)(work, product);
        NAMED(under)(work, half, t, b, columns, b_row);
    }
}

/* a (rows × n) becomes what times the adjoint of a lower triangle with a real diagonal gives a. */
static void NAMED(beside)(
    const NAMED(Work) *work, int64_t n, const T *t, int64_t t_row, T *a, int64_t rows, int64_t a_row)
{
    if (n <= LEAF) {
        R inverses[LEAF];
        for (int64_t j = 0; j < n; j++)
            inverses[j] = 1 / NAMED(real)(t[j * t_row + j]);
        for (int64_t i = 0; i < rows; i += SIDE_BY_SIDE) { /* which do not wait for each other */
            const int64_t left = rows - i, width = left < SIDE_BY_SIDE ? left : SIDE_BY_SIDE;
            T values[LEAF][SIDE_BY_SIDE] = {{NAMED(of)(0)}};
            for (int64_t r = 0; r < width; r++)
                for (int64_t j = 0; j < n; j++)
                    values[j][r] = a[(i + r) * a_row + j];
            for (int64_t j = 0; j < n; j++) {
                for (int64_t p = 0; p < j; p++) {
                    const T factor = NAMED(turned)(t[j * t_row + p]);
                    UNROLL
                    for (int64_t r = 0; r < SIDE_BY_SIDE; r++)
                        values[j][r] = NAMED(less)(values[j][r], factor, values[p][r]);
                }
                UNROLL
                for (int64_t r = 0; r < SIDE_BY_SIDE; r++)
                    values[j][r] = NAMED(scaled)(values[j][r], inverses[j]);
            }
            for (int64_t r = 0; r < width; r++)
                for (int64_t j = 0; j < n; j++)
                    a[(i + r) * a_row + j] = values[j][r];
        }
        return;
    }
    const int64_t half = (n / 2 + LEAF - 1) / LEAF * LEAF, rest = n - half;
    NAMED(beside)(work, half, t, t_row, a, rows, a_row);
    NAMED(subtract)(work, (NAMED(Product)){
        .a = a, .b = t + half * t_row, .c = a + half, .rows = rows, .columns = rest, .depth = half, .a_row = a_row,
        .a_column = 1, .b_row = 1, .b_column = t_row, .c_row = a_row, .conjugate = 1,
    });
    NAMED(beside)(work, rest, t + half * (t_row + 1), t_row, a + half, rows, a_row);
}
