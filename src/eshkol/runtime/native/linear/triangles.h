/* Triangles of one dtype and what is solved with them, of what products.h has; as that, included by kinds.h. */

/* A triangle, perhaps turned. */
typedef struct {
    const T *at;
    int64_t row, column;
    int lower, unit;
} NAMED(Triangle);

/* What numbers are multiplied with to be divided by one; 0 where they must be divided one by one. */
static inline T NAMED(inverse)(T divisor)
{
    const R size = NAMED(size)(divisor);
    const R least = sizeof(R) == 4 ? (R)1e-37 : (R)1e-307, most = sizeof(R) == 4 ? (R)1e37 : (R)1e307;
    return size > least && size < most ? NAMED(over)(NAMED(of)(1), divisor) : NAMED(of)(0);
}

#if PARTS == 1
/* A system of up to WHOLE rows, by panels of WIDTH columns: a strip of rows at a time is what is left of it after a
   product with those that are known, and is solved in registers. Some panels are gone along together, so that what is
   read of the triangle stays in the nearest cache. */
typedef struct {
    NAMED(Triangle) t; /* not turned */
    int64_t n, columns, b_row, given_row;
    R *b;
    const R *given; /* what is to be solved: b itself, or another matrix */
    int divided; /* by the diagonal, else multiplied with its inverse */
    int zeros;   /* what is 0 before other numbers of its column is looked for: the solution is, too */
    R (*corners)[STRIP][STRIP]; /* of the triangle along its diagonal, with what is made of that */
} NAMED(System);

#define PANELS_TOGETHER (WIDTH >= 24 ? 1 : 24 / WIDTH)
#define CORNERS(ROWS) ((ROWS) / STRIP + 1)
#define PANEL_ROWS (WHOLE + STRIP)

/* Row r of a strip, of which rows first … end - 1 are known. */
static inline ALWAYS void NAMED(solve_row)(int vectors, const NAMED(System) *s, const R (*corner)[STRIP],
                                           NAMED(Vector) (*sums)[VECTORS], int r, int first, int end)
{
    UNROLL
    for (int q = 0; q < STRIP; q++)
        if (q >= first && q < end)
            UNROLL
            for (int v = 0; v < vectors; v++)
                sums[r][v] -= corner[r][q] * sums[q][v];
    if (s->t.unit)
        return;
    UNROLL
    for (int v = 0; v < vectors; v++)
        if (s->divided)
            sums[r][v] /= corner[r][r];
        else
            sums[r][v] *= corner[r][r];
}

/* A strip of a panel, whose rows before `begin` and from `end` on are zeros; x has what is known of it, row by row. */
static inline ALWAYS void NAMED(solve_strip)(
    int vectors, const NAMED(System) *s, int64_t strip, int64_t begin, int64_t end, const R *given, int64_t given_row,
    R *b, int64_t b_row, int64_t width, R *x)
{
    const int64_t n = s->n, pitch = vectors * LANES, first = strip * STRIP;
    const int64_t rows = n - first < STRIP ? n - first : STRIP;
    const int64_t known = s->t.lower ? begin : first + rows, depth = s->t.lower ? first - begin : end - first - rows;
    const R *a[STRIP];
    NAMED(Vector) sums[STRIP][VECTORS];
    for (int64_t r = 0; r < STRIP; r++)
        a[r] = s->t.at + (first + (r < rows ? r : rows - 1)) * s->t.row + known;
    NAMED(sums)(vectors, depth, a, x + known * pitch, pitch, sums);
    const int whole = rows == STRIP && width == pitch;
    R part[STRIP * VECTORS * (VECTOR / sizeof(R))];
    const R *from = given + first * given_row;
    R *to = whole ? b + first * b_row : part;
    const int64_t from_row = whole ? given_row : pitch, to_row = whole ? b_row : pitch;
    if (!whole) {
        memset(part, 0, sizeof part);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < width; j++)
                part[r * pitch + j] = from[r * given_row + j];
        from = part;
    }
    const R(*corner)[STRIP] = (const R(*)[STRIP])s->corners[strip];
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            sums[r][v] = *(const NAMED(Vector) *)(from + r * from_row + v * LANES) - sums[r][v];
    if (s->t.lower) {
        UNROLL
        for (int r = 0; r < STRIP; r++)
            NAMED(solve_row)(vectors, s, corner, sums, r, 0, r);
    } else {
        UNROLL
        for (int r = STRIP - 1; r >= 0; r--)
            NAMED(solve_row)(vectors, s, corner, sums, r, r + 1, STRIP);
    }
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < vectors; v++) {
            *(NAMED(Vector) *)(x + (first + r) * pitch + v * LANES) = sums[r][v];
            *(NAMED(Vector) *)(to + r * to_row + v * LANES) = sums[r][v];
        }
    for (int64_t r = 0; r < rows && !whole; r++)
        memcpy(b + (first + r) * b_row, part + r * pitch, (size_t)width * sizeof(R));
}

/* Panels of so many columns together, from column `at` of b on, of which rows begin … end - 1 are not zeros. Both are
   where strips begin, or the last row. Without b, what is to be solved is x, panel after panel. */
static void NAMED(solve_together)(
    const NAMED(System) *s, int64_t begin, int64_t end, int64_t at, int64_t columns, R *x)
{
    const int64_t first = s->t.lower ? begin / STRIP : 0, strips = ((s->t.lower ? s->n : end) + STRIP - 1) / STRIP;
    for (int64_t k = first; k < strips; k++)
        for (int64_t j = 0; j < columns; j += WIDTH) {
            const int64_t strip = s->t.lower ? k : strips - 1 - k, left = columns - j;
            const int64_t width = left < WIDTH ? left : WIDTH, vectors = NAMED(registers)(width);
            R *known = x + j * PANEL_ROWS, *b = s->b == NULL ? known : s->b + at + j;
            const R *given = s->b == NULL ? known : s->given + at + j;
            const int64_t b_row = s->b == NULL ? vectors * LANES : s->b_row;
            const int64_t row = s->b == NULL ? vectors * LANES : s->given_row;
            if (vectors == VECTORS)
                NAMED(solve_strip)(VECTORS, s, strip, begin, end, given, row, b, b_row, width, known);
            else if (vectors == 1)
                NAMED(solve_strip)(1, s, strip, begin, end, given, row, b, b_row, width, known);
            else
                NAMED(solve_strip)(VECTORS - 1, s, strip, begin, end, given, row, b, b_row, width, known);
        }
}

typedef NAMED(Bits) NAMED(LooseBits) __attribute__((may_alias));

/* How many rows of so many columns are zeros before others are reached, on the side that is solved first. */
static int64_t NAMED(zeros)(const NAMED(System) *s, int64_t at, int64_t columns)
{
    const NAMED(Size) minus = {(R)-0.0};
    for (int64_t k = 0; k < s->n; k++) {
        const NAMED(LooseBits) *row
            = (const NAMED(LooseBits) *)(s->given + (s->t.lower ? k : s->n - 1 - k) * s->given_row + at);
        NAMED(LooseBits) any = 0;
        for (int64_t j = 0; j < columns; j++)
            any |= row[j];
        if ((any & ~minus.bits) != 0)
            return k;
    }
    return s->n;
}

static void NAMED(solve_panels)(void *context, int64_t begin, int64_t end)
{
    const NAMED(System) *s = context;
    R x[PANEL_ROWS * PANELS_TOGETHER * VECTORS * (VECTOR / sizeof(R))];
    for (int64_t number = begin; number < end; number++) {
        const int64_t first = number * PANELS_TOGETHER * WIDTH, left = s->columns - first;
        const int64_t columns = left < PANELS_TOGETHER * WIDTH ? left : PANELS_TOGETHER * WIDTH;
        const int64_t zeros = s->zeros ? NAMED(zeros)(s, first, columns) : 0, other = s->n - zeros;
        const int64_t from = s->t.lower ? zeros / STRIP * STRIP : 0, upper = (other + STRIP - 1) / STRIP * STRIP;
        const int64_t until = s->t.lower || upper > s->n ? s->n : upper;
        for (int64_t i = 0; i < s->n; i++)
            if (i < from || i >= until)
                memset(s->b + i * s->b_row + first, 0, (size_t)columns * sizeof(R));
        NAMED(solve_together)(s, from, until, first, columns, x);
    }
}

/* Whether it is worth looking for zeros: at least half of the row that is solved first is, and the triangle is finite,
   of which NaN and infinities would make other numbers of them. */
static int NAMED(has_zeros)(const NAMED(System) *s)
{
    const R *row = s->given + (s->t.lower ? 0 : s->n - 1) * s->given_row;
    int64_t count = 0;
    for (int64_t j = 0; j < s->columns; j++)
        count += row[j] == 0;
    if (count * 2 < s->columns)
        return 0;
    NAMED(Vector) sums = {0}; /* 0 times numbers that are not finite is NaN */
    R sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const R *numbers = s->t.at + i * s->t.row;
        int64_t j = s->t.lower ? 0 : i;
        const int64_t end = s->t.lower ? i + 1 : s->n;
        for (; j + LANES <= end; j += LANES)
            sums += *(const NAMED(Vector) *)(numbers + j) * 0;
        for (; j < end; j++)
            sum += numbers[j] * 0;
    }
    for (int lane = 0; lane < (int)LANES; lane++)
        sum += sums[lane];
    return sum == 0;
}

/* What is made of a triangle that is not turned, in memory for its corners. */
static NAMED(System) NAMED(system)(int64_t n, NAMED(Triangle) t, R (*corners)[STRIP][STRIP])
{
    NAMED(System) s = {.t = t, .n = n, .corners = corners};
    memset(corners, 0, (size_t)CORNERS(n) * sizeof *corners);
    for (int64_t i = 0; i < n && !t.unit; i++)
        s.divided |= NAMED(inverse)(t.at[i * (t.row + 1)]) == 0;
    for (int64_t i = n; i < (n + STRIP - 1) / STRIP * STRIP; i++)
        corners[i / STRIP][i % STRIP][i % STRIP] = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = i / STRIP * STRIP, end = first + STRIP < n ? first + STRIP : n;
        R *corner = corners[i / STRIP][i - first];
        for (int64_t j = t.lower ? first : i; j < (t.lower ? i + 1 : end); j++)
            corner[j - first] = t.at[i * t.row + j];
        if (!s.divided)
            corner[i - first] = 1 / corner[i - first];
    }
    return s;
}

/* A triangle that is turned over, by BLOCK rows of what it becomes: no more of them than what counts. */
typedef struct {
    NAMED(Triangle) t;
    int64_t n, pitch;
    R *to;
} NAMED(Turn);

static void NAMED(turn_blocks)(void *context, int64_t begin, int64_t end)
{
    const NAMED(Turn) *turn = context;
    for (int64_t first = begin * BLOCK; first < end * BLOCK && first < turn->n; first += BLOCK) {
        const int64_t rows = turn->n - first < BLOCK ? turn->n - first : BLOCK;
        const int64_t column = turn->t.lower ? 0 : first, columns = turn->t.lower ? first + rows : turn->n - first;
        NAMED(turn_over)(turn->t.at + first + column * turn->t.column, turn->t.column, columns, rows,
                         turn->to + first * turn->pitch + column, turn->pitch, 1);
    }
}

/* Whether so many columns are solved for by panels. */
static inline int NAMED(at_once)(int64_t n, int64_t columns)
{
    return n <= BLOCK ? n * columns >= 2 * LEAF : n <= WHOLE && columns >= PANELS_TOGETHER * WIDTH;
}

/* b becomes what the triangle times it gives another matrix (or b, as it was). */
static void NAMED(solve_block)(const NAMED(Work) *work, int64_t n, NAMED(Triangle) t, const R *given, int64_t given_row,
                               R *b, int64_t columns, int64_t b_row)
{
    R small[BLOCK * BLOCK], corners[CORNERS(WHOLE)][STRIP][STRIP];
    if (t.column != 1) {
        const int64_t pitch = n <= BLOCK ? n : NAMED(panel_pitch)(n), blocks = (n + BLOCK - 1) / BLOCK;
        R *turned = n <= BLOCK ? small : work->turned;
        NAMED(Turn) turn = {.t = t, .n = n, .pitch = pitch, .to = turned};
        const int shared = work->pool != NULL && n * n >= WORTH / 8;
        if (!shared || eshkol_parallel_for(work->pool, NAMED(turn_blocks), &turn, blocks, 1) != 0)
            NAMED(turn_blocks)(&turn, 0, blocks);
        t.at = turned, t.row = pitch, t.column = 1;
    }
    NAMED(System) s = NAMED(system)(n, t, corners);
    s.columns = columns, s.b = b, s.b_row = b_row, s.given = given, s.given_row = given_row;
    s.zeros = columns > WIDTH && n > 2 * STRIP && NAMED(has_zeros)(&s);
    const int64_t together = PANELS_TOGETHER * WIDTH, tasks = (columns + together - 1) / together;
    const int shared = work->pool != NULL && tasks > 1 && n * n / 2 * columns >= WORTH;
    if (!shared || eshkol_parallel_for(work->pool, NAMED(solve_panels), &s, tasks, 1) != 0)
        NAMED(solve_panels)(&s, 0, tasks);
}

/* Columns of the inverse of a matrix, of which L, U and the order of rows are known. */
typedef struct {
    NAMED(System) lower, upper;
    const int64_t *order;
    R *out;
} NAMED(Inverse);

/* Panels together of it: unit vectors, which are zeros before the first of their ones. */
static void NAMED(invert_panels)(void *context, int64_t begin, int64_t end)
{
    const NAMED(Inverse) *inverse = context;
    const int64_t n = inverse->lower.n;
    R x[PANEL_ROWS * PANELS_TOGETHER * VECTORS * (VECTOR / sizeof(R))];
    for (int64_t number = begin; number < end; number++) {
        const int64_t first = number * PANELS_TOGETHER * WIDTH, left = n - first;
        const int64_t columns = left < PANELS_TOGETHER * WIDTH ? left : PANELS_TOGETHER * WIDTH;
        memset(x, 0, sizeof x);
        for (int64_t j = 0; j < columns; j++) {
            const int64_t panel = j / WIDTH * WIDTH, width = columns - panel;
            x[panel * PANEL_ROWS + (first + j) * NAMED(registers)(width) * LANES + j - panel] = 1;
        }
        NAMED(solve_together)(&inverse->lower, first / STRIP * STRIP, n, 0, columns, x);
        NAMED(solve_together)(&inverse->upper, 0, n, 0, columns, x);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < columns; j++) {
                const int64_t panel = j / WIDTH * WIDTH, pitch = NAMED(registers)(columns - panel) * LANES;
                inverse->out[i * n + inverse->order[first + j]] = x[panel * PANEL_ROWS + i * pitch + j - panel];
            }
    }
}
#endif

/* b (n × columns) becomes what the triangle times it gives b. */
static void NAMED(under)(const NAMED(Work) *work, int64_t n, NAMED(Triangle) t, T *b, int64_t columns, int64_t b_row)
{
#if PARTS == 1
    if (NAMED(at_once)(n, columns)) {
        NAMED(solve_block)(work, n, t, b, b_row, b, columns, b_row);
        return;
    }
#endif
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

#if PARTS == 2
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
#endif
