/* Cholesky's factors of one dtype, of what products.h and triangles.h have; as those, included by kinds.h. */

#if PARTS == 1
/* A symmetric matrix by its upper triangle, which becomes a factor: as what rows are less products with lies above
   them, row by row, nothing is packed or turned. What is below the diagonal is never read; what is behind the last
   column (there are ROOT_MARGIN numbers) is 0. A large one goes by panels of rows that stay in the second cache: those
   below lose their products with a panel when it is done. Whatever is not the diagonal's is tiles for threads. */
typedef struct {
    R *at;
    int64_t n, pitch;
    int64_t until; /* rows of the panel */
    R *inverses; /* of the diagonal */
    int64_t first, rows; /* of the block that is worked on */
    const R *x; /* what it is made of: a symmetric matrix, or one of which the lower triangle counts; */
    R *out;     /* and where the factor is wanted */
    int64_t stride; /* of both */
    int symmetric, upper;
} NAMED(Root);

#define ROOT_ROWS (4 * STRIP) /* of a block, of which what is right of the diagonal is shared among threads */
#define ROOT_MARGIN (STRIP + WIDTH)
#define ROOT_PANEL (256 / ROOT_ROWS * ROOT_ROWS)
#define REST_ROWS (2 * ROOT_ROWS) /* of what is below a panel, for one task, */
#define REST_COLUMNS (3 * WIDTH)
#define ROOT_PITCH(n) NAMED(panel_pitch)((n) + ROOT_MARGIN)
#define ROOT_MEMORY(n) (((n) + 1) * ROOT_PITCH(n) + LANES)
#define CORNER_VECTORS ((int)(STRIP * BYTES >= VECTOR * VECTORS ? VECTORS : (STRIP * BYTES + VECTOR - 1) / VECTOR))
#define CORNER_COLUMNS ((STRIP * BYTES + CORNER_VECTORS * VECTOR - 1) / (CORNER_VECTORS * VECTOR) * CORNER_VECTORS \
                        * (VECTOR / BYTES))

/* c, which is so many registers of STRIP rows of the matrix, less the products of so many rows above it; and, unless
   less is all that it becomes, what the factor's transpose times it gives that: those rows are all that are above. */
static inline ALWAYS void NAMED(root_block)(int vectors, const NAMED(Root) *root, int64_t depth, int64_t row,
                                            int64_t column, int less, R *c, int64_t c_row)
{
    const int64_t pitch = root->pitch;
    const R *a = root->at + row, *b = root->at + column;
    NAMED(Vector) sums[STRIP][VECTORS];
    UNROLL
    for (int r = 0; r < STRIP; r++)
        UNROLL
        for (int v = 0; v < vectors; v++)
            sums[r][v] = *(const NAMED(Vector) *)(c + r * c_row + v * LANES);
    for (int64_t p = 0; p < depth; p++, a += pitch, b += pitch) {
        NAMED(Vector) other[VECTORS];
        UNROLL
        for (int v = 0; v < vectors; v++)
            other[v] = *(const NAMED(Vector) *)(b + v * LANES);
        UNROLL
        for (int r = 0; r < STRIP; r++)
            UNROLL
            for (int v = 0; v < vectors; v++)
                sums[r][v] -= a[r] * other[v];
    }
    UNROLL
    for (int r = 0; r < STRIP; r++) {
        if (!less) {
            UNROLL
            for (int q = 0; q < r; q++)
                UNROLL
                for (int v = 0; v < vectors; v++)
                    sums[r][v] -= a[q * pitch + r] * sums[q][v];
            UNROLL
            for (int v = 0; v < vectors; v++)
                sums[r][v] *= root->inverses[row + r];
        }
        UNROLL
        for (int v = 0; v < vectors; v++)
            *(NAMED(Vector) *)(c + r * c_row + v * LANES) = sums[r][v];
    }
}

static inline ALWAYS void NAMED(root_registers)(int64_t vectors, const NAMED(Root) *root, int64_t depth, int64_t row,
                                               int64_t column, int less, R *c, int64_t c_row)
{
    if (vectors == VECTORS)
        NAMED(root_block)(VECTORS, root, depth, row, column, less, c, c_row);
    else if (vectors == 1)
        NAMED(root_block)(1, root, depth, row, column, less, c, c_row);
    else
        NAMED(root_block)(VECTORS - 1, root, depth, row, column, less, c, c_row);
}

/* STRIP rows right of the diagonal's corner, or of what is below the panel, in columns first … end - 1, which are at
   most WIDTH. */
static void NAMED(root_tile)(const NAMED(Root) *root, int64_t row, int64_t first, int64_t end)
{
    const int less = row >= root->until;
    const int64_t width = end - first, vectors = NAMED(registers)(width), left = root->n - row;
    const int64_t rows = left < STRIP ? left : STRIP, pitch = root->pitch;
    const int whole = width == vectors * LANES && rows == STRIP;
    R part[STRIP * VECTORS * (VECTOR / BYTES)], *given = root->at + row * pitch + first;
    R *c = whole ? given : part;
    const int64_t c_row = whole ? pitch : WIDTH;
    if (!whole)
        memset(part, 0, sizeof part);
    for (int64_t r = 0; r < rows && !whole; r++)
        memcpy(part + r * WIDTH, given + r * pitch, (size_t)width * sizeof(R));
    if (less)
        NAMED(root_registers)(vectors, root, root->until, row, first, 1, c, c_row);
    else
        NAMED(root_registers)(vectors, root, row, row, first, 0, c, c_row);
    for (int64_t r = 0; r < rows && !whole; r++)
        memcpy(given + r * pitch, part + r * WIDTH, (size_t)width * sizeof(R));
}

/* The diagonal's corner from `row` on becomes its factor; 0 where it has none. */
static int NAMED(root_corner)(const NAMED(Root) *root, int64_t row)
{
    const int64_t left = root->n - row, rows = left < STRIP ? left : STRIP;
    R x[STRIP][CORNER_COLUMNS] = {{0}};
    R *corner = root->at + row * (root->pitch + 1);
    for (int64_t i = 0; i < rows; i++)
        memcpy(x[i], corner + i * root->pitch, STRIP * sizeof(R));
    for (int64_t j = 0; j < STRIP; j += CORNER_VECTORS * LANES)
        NAMED(root_block)(CORNER_VECTORS, root, row, row, row + j, 1, x[0] + j, CORNER_COLUMNS);
    for (int64_t k = 0; k < rows; k++) {
        const R square = x[k][k];
        if (!(square > 0) || square - square != 0)
            return 0;
        const R whole = ROOT(square), inverse = root->inverses[row + k] = 1 / whole;
        UNROLL
        for (int64_t j = 0; j < STRIP; j++)
            x[k][j] *= inverse;
        x[k][k] = whole;
        for (int64_t i = k + 1; i < rows; i++) {
            const R factor = x[k][i];
            UNROLL
            for (int64_t j = 0; j < STRIP; j++) /* more than the upper triangle, as registers take whole rows */
                x[i][j] -= factor * x[k][j];
        }
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(corner + i * root->pitch, x[i], STRIP * sizeof(R));
    return 1;
}

/* Tiles begin … end - 1 right of the diagonal's block. */
static void NAMED(root_tiles)(void *context, int64_t begin, int64_t end)
{
    const NAMED(Root) *root = context;
    for (int64_t number = begin; number < end; number++) {
        const int64_t first = root->first + root->rows + number * WIDTH, beyond = first + WIDTH;
        for (int64_t row = root->first; row < root->first + root->rows; row += STRIP)
            NAMED(root_tile)(root, row, first, beyond < root->n ? beyond : root->n);
    }
}

/* The panel becomes rows of the factor; 0 where there is none. */
static int NAMED(root_of_panel)(const NAMED(Work) *work, NAMED(Root) *root)
{
    const int64_t n = root->n, until = root->until;
    for (root->first = 0; root->first < until; root->first += ROOT_ROWS) {
        root->rows = until - root->first < ROOT_ROWS ? until - root->first : ROOT_ROWS;
        const int64_t end = root->first + root->rows, tiles = (n - end + WIDTH - 1) / WIDTH;
        for (int64_t row = root->first; row < end; row += STRIP) {
            if (!NAMED(root_corner)(root, row))
                return 0;
            for (int64_t j = row + STRIP; j < end; j += WIDTH)
                NAMED(root_tile)(root, row, j, j + WIDTH < end ? j + WIDTH : end);
        }
        const int shared = work->pool != NULL && tiles > 1 && root->rows * (n - end) * end >= WORTH;
        if (!shared || eshkol_parallel_for(work->pool, NAMED(root_tiles), root, tiles, 1) != 0)
            NAMED(root_tiles)(root, 0, tiles);
    }
    return 1;
}

/* Rectangles begin … end - 1 of what is below the panel, row by row: as far as they reach over the diagonal. */
static void NAMED(root_rest)(void *context, int64_t begin, int64_t end)
{
    const NAMED(Root) *root = context;
    const int64_t n = root->n, beside = (n - root->until + REST_COLUMNS - 1) / REST_COLUMNS;
    for (int64_t number = begin; number < end; number++) {
        const int64_t top = root->until + number / beside * REST_ROWS, below = top + REST_ROWS;
        const int64_t left = root->until + number % beside * REST_COLUMNS, right = left + REST_COLUMNS;
        for (int64_t first = left; first < right && first < n; first += WIDTH) {
            const int64_t beyond = first + WIDTH < n ? first + WIDTH : n;
            for (int64_t row = top; row < below && row < beyond; row += STRIP)
                NAMED(root_tile)(root, row, first, beyond);
        }
    }
}

/* 0 where there is no factor. */
static int NAMED(root_by_panels)(const NAMED(Work) *work, NAMED(Root) root)
{
    for (;;) {
        root.until = root.n <= ROOTED ? root.n : ROOT_PANEL;
        if (!NAMED(root_of_panel)(work, &root))
            return 0;
        const int64_t left = root.n - root.until, rows = root.until;
        if (left == 0)
            return 1;
        const int64_t tasks = ((left + REST_ROWS - 1) / REST_ROWS) * ((left + REST_COLUMNS - 1) / REST_COLUMNS);
        if (work->pool == NULL || eshkol_parallel_for(work->pool, NAMED(root_rest), &root, tasks, 1) != 0)
            NAMED(root_rest)(&root, 0, tasks);
        root.n = left;
        root.at += rows * (root.pitch + 1), root.inverses += rows;
    }
}

/* Rows from `first` on, as many as registers have lanes, of what a matrix becomes: its lower triangle turned over, or
   the mean of both. */
static void NAMED(take_rows)(const NAMED(Root) *root, int64_t first)
{
    const int64_t n = root->n, stride = root->stride, pitch = root->pitch, whole = n / LANES * LANES;
    const int64_t end = first + LANES < n ? first + LANES : n;
    const R *x = root->x;
    for (int64_t i = first; i < end; i++) { /* corners are read with what is left of the diagonal */
        const int64_t begin = i < STRIP ? 0 : i - STRIP;
        memset(root->at + i * pitch + begin, 0, (size_t)(i - begin) * sizeof(R));
        memset(root->at + i * pitch + n, 0, (size_t)(pitch - n) * sizeof(R));
    }
    for (int64_t j = first; j < whole; j += LANES) {
        NAMED(Vector) turned[VECTOR / BYTES];
        UNROLL
        for (int r = 0; r < (int)LANES; r++)
            turned[r] = *(const NAMED(Vector) *)(x + (j + r) * stride + first);
        NAMED(turn_registers)(turned);
        if (root->symmetric)
            UNROLL
            for (int r = 0; r < (int)LANES; r++)
                turned[r] = (turned[r] + *(const NAMED(Vector) *)(x + (first + r) * stride + j)) / 2;
        UNROLL
        for (int r = 0; r < (int)LANES; r++)
            *(NAMED(Vector) *)(root->at + (first + r) * pitch + j) = turned[r];
    }
    for (int64_t i = first; i < end; i++)
        for (int64_t j = i > whole ? i : whole; j < n; j++) {
            const R number = x[j * stride + i];
            root->at[i * pitch + j] = root->symmetric ? NAMED(mean)(number, x[i * stride + j]) : number;
        }
}

/* As many rows of the factor: as a lower triangle, or as the upper one that it is. */
static void NAMED(give_rows)(const NAMED(Root) *root, int64_t first)
{
    const int64_t n = root->n, stride = root->stride, whole = n / LANES * LANES;
    const int64_t end = first + LANES < n ? first + LANES : n;
    R *out = root->out;
    for (int64_t j = 0; j <= first && first < whole && !root->upper; j += LANES) {
        NAMED(Vector) turned[VECTOR / BYTES];
        UNROLL
        for (int r = 0; r < (int)LANES; r++)
            turned[r] = *(const NAMED(Vector) *)(root->at + (j + r) * root->pitch + first);
        NAMED(turn_registers)(turned);
        UNROLL
        for (int r = 0; r < (int)LANES; r++)
            *(NAMED(Vector) *)(out + (first + r) * stride + j) = turned[r];
    }
    for (int64_t i = first; i < end; i++) {
        R *row = out + i * stride;
        for (int64_t j = 0; j <= i && first >= whole && !root->upper; j++)
            row[j] = root->at[j * root->pitch + i];
        if (root->upper) {
            memset(row, 0, (size_t)i * sizeof(R));
            memcpy(row + i, root->at + i * (root->pitch + 1), (size_t)(n - i) * sizeof(R));
        } else
            memset(row + i + 1, 0, (size_t)(n - i - 1) * sizeof(R));
    }
}

static void NAMED(root_taken)(void *context, int64_t begin, int64_t end)
{
    for (int64_t number = begin; number < end; number++)
        NAMED(take_rows)(context, number * LANES);
}

static void NAMED(root_given)(void *context, int64_t begin, int64_t end)
{
    for (int64_t number = begin; number < end; number++)
        NAMED(give_rows)(context, number * LANES);
}

/* The factor of a matrix, in memory for ROOT_MEMORY(n) numbers; 0 where there is none. */
static int NAMED(root_of_matrix)(const NAMED(Work) *work, NAMED(Root) root)
{
    const int64_t n = root.n, tasks = (n + LANES - 1) / LANES, grain = ROOT_ROWS / LANES > 1 ? ROOT_ROWS / LANES : 1;
    const int shared = work->pool != NULL && n * n >= WORTH / 8;
    root.pitch = ROOT_PITCH(n);
    root.at = (R *)(((uintptr_t)work->root + VECTOR - 1) / VECTOR * VECTOR);
    root.inverses = root.at + n * root.pitch;
    if (!shared || eshkol_parallel_for(work->pool, NAMED(root_taken), &root, tasks, grain) != 0)
        NAMED(root_taken)(&root, 0, tasks);
    const int found = NAMED(root_by_panels)(work, root);
    if (!shared || eshkol_parallel_for(work->pool, NAMED(root_given), &root, tasks, grain) != 0)
        NAMED(root_given)(&root, 0, tasks);
    return found;
}

#else /* PARTS == 2: columns that are halved, as they lie */

/* The lower triangle of c -= a · its adjoint; more than that is written. */
static void NAMED(square_less)(const NAMED(Work) *work, int64_t n, int64_t depth, const T *a, T *c, int64_t stride)
{
    const int64_t half = n <= 32 ? n : (n / 2 + LEAF - 1) / LEAF * LEAF;
    if (half < n) {
        NAMED(square_less)(work, half, depth, a, c, stride);
        NAMED(square_less)(work, n - half, depth, a + half * stride, c + half * (stride + 1), stride);
    }
    const int64_t first = half < n ? half : 0;
    NAMED(subtract)(work, (NAMED(Product)){
        .a = a + first * stride, .b = a, .c = c + first * stride, .rows = n - first, .columns = half, .depth = depth,
        .a_row = stride, .a_column = 1, .b_row = 1, .b_column = stride, .c_row = stride, .conjugate = 1,
    });
}

/* The lower triangle of a matrix becomes its factor; 0 where it has none. */
static int NAMED(root)(const NAMED(Work) *work, int64_t n, T *a, int64_t stride)
{
    if (n <= LEAF) {
        for (int64_t j = 0; j < n; j++) {
            R left = NAMED(real)(a[j * (stride + 1)]);
            for (int64_t p = 0; p < j; p++)
                left = NAMED(real)(NAMED(less)(NAMED(of)(left), a[j * stride + p], NAMED(turned)(a[j * stride + p])));
            if (!(left > 0) || left - left != 0)
                return 0;
            const R whole = (R)sqrt((double)left);
            a[j * (stride + 1)] = NAMED(of)(whole);
            for (int64_t i = j + 1; i < n; i++) {
                T sum = a[i * stride + j];
                for (int64_t p = 0; p < j; p++)
                    sum = NAMED(less)(sum, a[i * stride + p], NAMED(turned)(a[j * stride + p]));
                a[i * stride + j] = NAMED(scaled)(sum, 1 / whole);
            }
        }
        return 1;
    }
    const int64_t half = (n / 2 + LEAF - 1) / LEAF * LEAF, rest = n - half;
    if (!NAMED(root)(work, half, a, stride))
        return 0;
    NAMED(beside)(work, half, a, stride, a + half * stride, rest, stride);
    NAMED(square_less)(work, rest, half, a + half * stride, a + half * (stride + 1), stride);
    return NAMED(root)(work, rest, a + half * (stride + 1), stride);
}

#endif

static void NAMED(cholesky)(void *context, int64_t begin, int64_t end)
{
    EshkolLinear *linear = context;
    const int64_t n = linear->rows;
    const int upper = (linear->flags & ESHKOL_CHOLESKY_UPPER) != 0;
    NAMED(Work) work;
#if PARTS == 1
    R *memory = NAMED(prepared)(linear, &work, ROOT_MEMORY(n), 0);
    work.root = memory;
#else
    void *memory = NAMED(prepared)(linear, &work, 0, 0);
#endif
    for (int64_t number = begin; number < end && memory != NULL; number++) {
        const T *x = NAMED(operand)(linear, 0, number, n * n);
        T *out = (T *)linear->out[0] + number * n * n;
#if PARTS == 1
        const NAMED(Root) root = {.x = x, .out = out, .n = n, .stride = n, .symmetric = 1, .upper = upper};
        if (!NAMED(root_of_matrix)(&work, root))
            eshkol_linear_fault(linear, (uint64_t)number);
#else
        for (int64_t first = 0; first < n; first += LEAF) /* lines of a cache are read once, down the columns too */
            for (int64_t j = 0; j < n && j < first + LEAF; j++)
                for (int64_t i = j > first ? j : first; i < n && i < first + LEAF; i++)
                    out[i * n + j] = NAMED(mean)(x[i * n + j], NAMED(turned)(x[j * n + i]));
        if (!NAMED(root)(&work, n, out, n))
            eshkol_linear_fault(linear, (uint64_t)number);
        for (int64_t first = 0; first < n && upper; first += LEAF)
            for (int64_t j = 0; j < n && j < first + LEAF; j++)
                for (int64_t i = j + 1 > first ? j + 1 : first; i < n && i < first + LEAF; i++) {
                    out[j * n + i] = NAMED(turned)(out[i * n + j]);
                    out[i * n + j] = NAMED(of)(0);
                }
        for (int64_t i = 0; i < n && !upper; i++)
            memset(out + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof(T));
#endif
    }
    eshkol_scratch_give(memory);
}
