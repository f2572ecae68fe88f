/* Registers of one dtype beside each other: matrices that are turned over, and numbers of several matrices that come to
   lie side by side. Included by kinds.h behind products.h. */

typedef NAMED(Bits) NAMED(BitsVector) __attribute__((vector_size(VECTOR), aligned(sizeof(R)), may_alias));

#if PARTS == 1
#include "../turned.h"

/* So many numbers of each of LANES matrices: number k of all becomes a register. */
static void NAMED(side_by_side)(int64_t count, const R *const *from, NAMED(Vector) *to)
{
    if (count < LANES) {
        for (int64_t lane = 0; lane < LANES; lane++)
            for (int64_t k = 0; k < count; k++)
                ((R *)to)[k * LANES + lane] = from[lane][k];
        return;
    }
    for (int64_t k = 0; k < count; k += LANES) {
        const int64_t first = k + LANES <= count ? k : count - LANES; /* some of the last ones twice */
        NAMED(Vector) x[VECTOR / BYTES];
        UNROLL
        for (int lane = 0; lane < (int)LANES; lane++)
            x[lane] = *(const NAMED(Vector) *)(from[lane] + first);
        NAMED(turn_registers)(x);
        UNROLL
        for (int lane = 0; lane < (int)LANES; lane++)
            to[first + lane] = x[lane];
    }
}

/* And back. */
static void NAMED(one_by_one)(int64_t count, const NAMED(Vector) *from, R *const *to)
{
    if (count < LANES) {
        for (int64_t lane = 0; lane < LANES; lane++)
            for (int64_t k = 0; k < count; k++)
                to[lane][k] = ((const R *)from)[k * LANES + lane];
        return;
    }
    for (int64_t k = 0; k < count; k += LANES) {
        const int64_t first = k + LANES <= count ? k : count - LANES;
        NAMED(Vector) x[VECTOR / BYTES];
        UNROLL
        for (int lane = 0; lane < (int)LANES; lane++)
            x[lane] = from[first + lane];
        NAMED(turn_registers)(x);
        UNROLL
        for (int lane = 0; lane < (int)LANES; lane++)
            *(NAMED(Vector) *)(to[lane] + first) = x[lane];
    }
}
#endif

/* How far the columns of a panel lie apart: not so that all fall into the same places of a cache. */
static inline int64_t NAMED(panel_pitch)(int64_t rows)
{
    const int64_t pitch = (rows + LANES - 1) / LANES * LANES;
    return pitch * (int64_t)sizeof(R) % 1024 ? pitch : pitch + LANES;
}

/* b (columns × rows) becomes the transpose of a, times a factor. */
static void NAMED(turn_over)(const T *a, int64_t a_row, int64_t rows, int64_t columns, T *b, int64_t b_row, R by)
{
    int64_t whole = 0; /* columns that registers take */
#if PARTS == 1
    for (; whole + LANES <= columns; whole += LANES) {
        int64_t first = 0;
        for (; first + LANES <= rows; first += LANES) {
            NAMED(Vector) x[VECTOR / BYTES];
            UNROLL
            for (int r = 0; r < (int)LANES; r++)
                x[r] = *(const NAMED(Vector) *)(a + (first + r) * a_row + whole);
            NAMED(turn_registers)(x);
            UNROLL
            for (int r = 0; r < (int)LANES; r++)
                *(NAMED(Vector) *)(b + (whole + r) * b_row + first) = x[r] * by;
        }
        for (int64_t j = whole; j < whole + LANES; j++)
            for (int64_t i = first; i < rows; i++)
                b[j * b_row + i] = a[i * a_row + j] * by;
    }
#endif
    for (int64_t first = 0; first < rows; first += LEAF)
        for (int64_t j = whole; j < columns; j++)
            for (int64_t i = first; i < rows && i < first + LEAF; i++)
                b[j * b_row + i] = NAMED(scaled)(a[i * a_row + j], by);
}
