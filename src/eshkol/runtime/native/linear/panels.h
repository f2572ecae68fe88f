/* Panels of columns of one dtype that are eliminated, of what products.h has; as that, included by kinds.h. A panel is
   worked on as its transpose: its columns lie together, so that registers hold rows of one column, and what is
   exchanged reaches the rest of the matrix when the panel is done. */

#if PARTS == 1
typedef struct {
    R *at; /* columns, each from the row of the panel's first pivot on */
    int64_t rows, pitch;
    int64_t with[PANEL_COLUMNS]; /* which row was exchanged with that of a column's pivot */
    int singular;
} NAMED(Panel);

/* The first of the greatest among numbers first … end - 1, or the first NaN. */
static int64_t NAMED(greatest)(const R *x, int64_t first, int64_t end)
{
    const NAMED(Size) infinite = {(R)INFINITY}, minus = {(R)-0.0};
    NAMED(Size) best = {0};
    int64_t found = first, until = first; /* where it must be */
    for (int64_t i = first; i < end; i += SOME_ROWS) {
        const int64_t stop = i + SOME_ROWS < end ? i + SOME_ROWS : end;
        NAMED(BitsVector) most = {0};
        NAMED(Size) here = {0};
        int64_t j = i;
        for (; j + LANES <= stop; j += LANES) {
            const NAMED(BitsVector) size = *(const NAMED(BitsVector) *)(x + j) & ~minus.bits;
            const NAMED(BitsVector) above = (NAMED(BitsVector))(size > most);
            most = (size & above) | (most & ~above);
        }
        for (int lane = 0; lane < (int)LANES; lane++)
            here.bits = most[lane] > here.bits ? most[lane] : here.bits;
        for (; j < stop; j++) {
            const NAMED(Size) size = {ABSOLUTE(x[j])};
            here.bits = size.bits > here.bits ? size.bits : here.bits;
        }
        if (here.bits > best.bits && !(best.bits > infinite.bits))
            best = here, found = i, until = stop;
    }
    if (best.bits > infinite.bits)
        while (x[found] == x[found])
            found++;
    else
        while (found < until && ABSOLUTE(x[found]) != best.number)
            found++;
    return found;
}

/* Column k, of a panel that is done from column `first` to it, less what these columns take off it. */
static inline void NAMED(take_columns)(const NAMED(Panel) *p, int64_t first, int64_t k)
{
    R *column = p->at + k * p->pitch, factors[LEAF];
    const R *others = p->at + first * p->pitch;
    const int64_t count = k - first;
    for (int64_t q = 0; q < count; q++) {
        factors[q] = column[first + q];
        for (int64_t i = first + q + 1; i < k; i++)
            column[i] -= factors[q] * others[q * p->pitch + i];
    }
    int64_t i = k;
    for (; i + 2 * LANES <= p->rows; i += 2 * LANES) {
        NAMED(Vector) one = *(NAMED(Vector) *)(column + i), two = *(NAMED(Vector) *)(column + i + LANES);
        for (int64_t q = 0; q < count; q++) {
            one -= factors[q] * *(const NAMED(Vector) *)(others + q * p->pitch + i);
            two -= factors[q] * *(const NAMED(Vector) *)(others + q * p->pitch + i + LANES);
        }
        *(NAMED(Vector) *)(column + i) = one;
        *(NAMED(Vector) *)(column + i + LANES) = two;
    }
    for (; i < p->rows; i++)
        for (int64_t q = 0; q < count; q++)
            column[i] -= factors[q] * others[q * p->pitch + i];
}

/* Columns first … first + width - 1 of a panel, of `columns` altogether. */
static void NAMED(eliminate_panel)(
    const NAMED(Work) *work, NAMED(Panel) *p, int64_t columns, int64_t first, int64_t width)
{
    if (width <= LEAF) {
        for (int64_t k = first; k < first + width; k++) {
            R *column = p->at + k * p->pitch;
            NAMED(take_columns)(p, first, k);
            const int64_t with = p->with[k] = NAMED(greatest)(column, k, p->rows);
            const R divisor = column[with], inverse = NAMED(inverse)(divisor);
            for (int64_t j = 0; j < columns && with != k; j++) {
                R *other = p->at + j * p->pitch;
                const R kept = other[k];
                other[k] = other[with];
                other[with] = kept;
            }
            if (divisor == 0)
                p->singular = 1;
            else if (inverse != 0)
                for (int64_t i = k + 1; i < p->rows; i++)
                    column[i] *= inverse;
            else
                for (int64_t i = k + 1; i < p->rows; i++)
                    column[i] /= divisor;
        }
        return;
    }
    const int64_t half = (width / 2 + LEAF - 1) / LEAF * LEAF, rest = width - half, then = first + half;
    NAMED(eliminate_panel)(work, p, columns, first, half);
    for (int64_t j = then; j < then + rest; j++)
        for (int64_t q = first; q < then; q++) {
            const R factor = p->at[j * p->pitch + q];
            for (int64_t i = q + 1; i < then; i++)
                p->at[j * p->pitch + i] -= factor * p->at[q * p->pitch + i];
        }
    NAMED(subtract)(work, (NAMED(Product)){
        .a = p->at + then * p->pitch + first, .b = p->at + first * p->pitch + then, .c = p->at + then * (p->pitch + 1),
        .rows = rest, .columns = p->rows - then, .depth = half, .a_row = p->pitch, .a_column = 1,
        .b_row = p->pitch, .b_column = 1, .c_row = p->pitch,
    });
    NAMED(eliminate_panel)(work, p, columns, then, rest);
}
#endif
