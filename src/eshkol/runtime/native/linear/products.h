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

/* Bits of a number without its sign rise as its size does, with NaN above all. */
typedef __typeof__(_Generic((R)0, float: (int32_t)0, double: (int64_t)0)) NAMED(Bits);
typedef union {
    R number;
    NAMED(Bits) bits;
} NAMED(Size);

/* --- products ----------------------------------------------------------------------------------------------------- */

typedef R NAMED(Vector) __attribute__((vector_size(VECTOR), aligned(sizeof(R)), may_alias));
typedef __typeof__((NAMED(Vector)){0} < (NAMED(Vector)){0}) NAMED(Mask);

/* Memory to work in, and the threads that may help. */
typedef struct {
    eshkol_scheduler *pool;
    R *packed; /* of matrices that are not small */
    R *panel;  /* likewise: PANEL_COLUMNS of them */
    R *turned; /* of a triangle of up to WHOLE rows that is turned over */
    R *root;   /* of what Cholesky's factors are made of */
} NAMED(Work);

/* c -= a · b, where b (conjugated, if it is to be) lies packed as panels of WIDTH columns; where it is read as it lies,
   only the panel that fewer columns are left for is. */
typedef struct {
    const T *a, *b;
    T *c;
    const R *packed;
    int64_t rows, columns, depth;
    int64_t a_row, a_column, b_row, b_column, c_row;
    int conjugate, as_it_lies;
} NAMED(Product);

/* STRIP rows of a · b, each of which begins where `a` says, in so many registers for each. */
static inline ALWAYS void NAMED(sums)(
    int vectors, int64_t depth, const R *const *a, const R *b, int64_t b_row, NAMED(Vector) (*sums)[VECTORS])
{
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            sums[r][v] = (NAMED(Vector)){0};
    int64_t p = 0;
#if BY_LANES
    for (; p + LANES <= depth; p += LANES) {
        NAMED(Vector) columns[STRIP];
        UNROLL
        for (int r = 0; r < STRIP; r++)
            columns[r] = *(const NAMED(Vector) *)(a[r] + p);
        UNROLL
        for (int lane = 0; lane < (int)LANES; lane++, b += b_row) {
            NAMED(Vector) row[VECTORS];
            UNROLL
            for (int v = 0; v < vectors; v++)
                row[v] = *(const NAMED(Vector) *)(b + v * LANES);
            UNROLL
            for (int r = 0; r < STRIP; r++)
                UNROLL
                for (int v = 0; v < vectors; v++)
                    sums[r][v] += columns[r][lane] * row[v];
        }
    }
#endif
    for (; p < depth; p++, b += b_row) {
        NAMED(Vector) row[VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++)
            row[v] = *(const NAMED(Vector) *)(b + v * LANES);
        UNROLL
        for (int r = 0; r < STRIP; r++)
            UNROLL
            for (int v = 0; v < vectors; v++)
                sums[r][v] += a[r][p] * row[v];
    }
}

static inline ALWAYS void NAMED(block)(
    int vectors, int64_t depth, const R *const *a, const R *b, int64_t b_row, R *c, int64_t c_row)
{
    NAMED(Vector) sums[STRIP][VECTORS];
    NAMED(sums)(vectors, depth, a, b, b_row, sums);
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            *(NAMED(Vector) *)(c + r * c_row + v * LANES) -= sums[r][v];
}

/* c -= a · b for STRIP rows and as many columns as so many registers hold: fewer of them where fewer are wanted. */
static void NAMED(tile)(
    int64_t vectors, int64_t depth, const R *const *a, const R *b, int64_t b_row, R *c, int64_t c_row)
{
    if (vectors == VECTORS)
        NAMED(block)(VECTORS, depth, a, b, b_row, c, c_row);
    else if (vectors == 1)
        NAMED(block)(1, depth, a, b, b_row, c, c_row);
    else
        NAMED(block)(VECTORS - 1, depth, a, b, b_row, c, c_row);
}

/* How many registers so many columns take, which are at most WIDTH. */
static inline int64_t NAMED(registers)(int64_t columns)
{
    return columns >= WIDTH ? VECTORS : (columns + LANES - 1) / LANES;
}

/* The columns of b from `first` on, each panel as wide as the registers that it takes. */
static void NAMED(pack)(const NAMED(Product) *product, int64_t first, R *packed)
{
    for (; first < product->columns; first += WIDTH) {
        const int64_t left = product->columns - first, width = left < WIDTH ? left : WIDTH;
        const int64_t pitch = NAMED(registers)(width) * LANES;
        const T *from = product->b + first * product->b_column;
        if (PARTS == 1 && product->b_column != 1) { /* its columns lie together */
            for (int64_t j = 0; j < pitch; j++, from += product->b_column)
                for (int64_t p = 0; p < product->depth; p++)
                    packed[p * pitch + j] = j < width ? NAMED(real)(from[p * product->b_row]) : 0;
            packed += product->depth * pitch;
            continue;
        }
        for (int64_t p = 0; p < product->depth; p++, packed += PARTS * pitch, from += product->b_row) {
#if PARTS == 1
            if (width == WIDTH) {
                UNROLL
                for (int v = 0; v < VECTORS; v++)
                    *(NAMED(Vector) *)(packed + v * LANES) = *(const NAMED(Vector) *)(from + v * LANES);
                continue;
            }
#endif
            memset(packed, 0, (size_t)(PARTS * pitch) * sizeof *packed);
            for (int64_t j = 0; j < width; j++) {
#if PARTS == 1
                packed[j] = from[j];
#else
                const T number = from[j * product->b_column];
                packed[j] = number.re;
                packed[pitch + j] = product->conjugate ? -number.im : number.im;
#endif
            }
        }
    }
}

/* What a product takes off the rows from `first` on, at most STRIP, and the columns from `at` on, at most WIDTH: rows
   of a, by their parts, begin where `from` says. Complex products are two of real numbers, one for each part. */
static void NAMED(take_tile)(const NAMED(Product) *product, int64_t first, int64_t at, const R *const (*from)[STRIP])
{
    const int64_t left = product->rows - first, rows = left < STRIP ? left : STRIP;
    const int64_t over = product->columns - at, width = over < WIDTH ? over : WIDTH;
    const int64_t vectors = NAMED(registers)(width), depth = product->depth * PARTS;
    const R *b = product->packed + (product->as_it_lies ? 0 : at * depth);
    int64_t pitch = vectors * LANES, b_row = pitch;
    T *c = product->c + first * product->c_row + at;
#if PARTS == 1
    if (product->as_it_lies && width == WIDTH)
        b = product->b + at, b_row = product->b_row;
    if (rows == STRIP && width == pitch) {
        NAMED(tile)(vectors, depth, from[0], b, b_row, c, product->c_row);
        return;
    }
#endif
    R found[PARTS][STRIP * VECTORS * (VECTOR / sizeof(R))] = {{0}};
    for (int part = 0; part < PARTS; part++)
        NAMED(tile)(vectors, depth, from[part], b, b_row, found[part], pitch);
    for (int64_t r = 0; r < rows; r++) {
        T *row = c + r * product->c_row;
        for (int64_t j = 0; j < width; j++) {
#if PARTS == 1
            row[j] += found[0][r * pitch + j];
#else
            row[j].re += found[0][r * pitch + j];
            row[j].im += found[1][r * pitch + j];
#endif
        }
    }
}

/* Strips begin … end - 1 of a product's rows. Rows that there are not are the last one again. */
static void NAMED(strips)(void *context, int64_t begin, int64_t end)
{
    const NAMED(Product) *product = context;
    const int64_t depth = product->depth * PARTS, last = product->rows - 1;
    const int in_place = PARTS == 1 && product->a_column == 1;
    const R *from[PARTS][STRIP];
    R strip[PARTS][STRIP * DEPTH * PARTS];
    for (int64_t first = begin * STRIP; first < end * STRIP && first <= last; first += STRIP) {
        for (int64_t r = 0; r < STRIP; r++) {
            const T *row = product->a + (first + r < last ? first + r : last) * product->a_row;
            for (int part = 0; part < PARTS; part++)
                from[part][r] = in_place ? (const R *)row : strip[part] + r * depth;
            for (int64_t p = 0; p < product->depth && !in_place; p++) {
                const T value = row[p * product->a_column];
#if PARTS == 1
                strip[0][r * depth + p] = value;
#else
                strip[0][r * depth + 2 * p] = value.re;
                strip[0][r * depth + 2 * p + 1] = -value.im;
                strip[1][r * depth + 2 * p] = value.im;
                strip[1][r * depth + 2 * p + 1] = value.re;
#endif
            }
        }
        for (int64_t at = 0; at < product->columns; at += WIDTH)
            NAMED(take_tile)(product, first, at, (const R *const (*)[STRIP])from);
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
    if (work->packed == NULL || (PARTS == 2 && all.columns < 4) || all.rows * all.columns * all.depth < 512) {
        NAMED(few)(&all);
        return;
    }
    product.as_it_lies = PARTS == 1 && all.rows <= FEW_ROWS && all.b_column == 1;
    for (int64_t p = 0; p < all.depth; p += DEPTH) {
        product.depth = all.depth - p < DEPTH ? all.depth - p : DEPTH;
        product.a = all.a + p * all.a_column;
        for (int64_t j = 0; j < all.columns; j += BREADTH) {
            product.columns = all.columns - j < BREADTH ? all.columns - j : BREADTH;
            product.b = all.b + p * all.b_row + j * all.b_column;
            product.c = all.c + j;
            product.packed = work->packed;
            NAMED(pack)(&product, product.as_it_lies ? product.columns / WIDTH * WIDTH : 0, work->packed);
            const int64_t strips = (product.rows + STRIP - 1) / STRIP;
            const int shared = work->pool != NULL && product.rows * product.columns * product.depth >= WORTH;
            if (!shared || eshkol_parallel_for(work->pool, NAMED(strips), &product, strips, STRIPS_AT_A_TIME) != 0)
                NAMED(strips)(&product, 0, strips);
        }
    }
}
