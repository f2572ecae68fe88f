/* Whole transforms of parts of one type (R; NAMED gives names of their own): where signals come from and go to, what
   is around those of real numbers, Bluestein's way, and the signals of a task, one by one or GROUP side by side. */

typedef R NAMED(Vector) __attribute__((vector_size(VECTOR), aligned(sizeof(R)), may_alias));
typedef __typeof__(_Generic((R)0, float: (int32_t)0, double: (int64_t)0)) NAMED(Bits);
typedef NAMED(Bits) NAMED(BitsVector) __attribute__((vector_size(VECTOR)));
#include "../turned.h"

/* --- to and fro --------------------------------------------------------------------------------------------------- */

/* Numbers whose parts lie in pairs, apart, imaginary ones with a sign; or the other way round, times a factor. */
static void NAMED(take)(int64_t n, int64_t apart, R sign, const R *restrict x, R *restrict re, R *restrict im)
{
    if (apart == 1) {
        FREELY for (int64_t k = 0; k < n; k++) re[k] = x[2 * k], im[k] = sign * x[2 * k + 1];
    } else {
        for (int64_t k = 0; k < n; k++)
            re[k] = x[2 * apart * k], im[k] = sign * x[2 * apart * k + 1];
    }
}

static void NAMED(give)(int64_t n, int64_t apart, R factor, R other, const R *restrict re, const R *restrict im,
                        R *restrict y)
{
    if (apart == 1) {
        FREELY for (int64_t k = 0; k < n; k++) y[2 * k] = factor * re[k], y[2 * k + 1] = other * im[k];
    } else {
        for (int64_t k = 0; k < n; k++)
            y[2 * apart * k] = factor * re[k], y[2 * apart * k + 1] = other * im[k];
    }
}

/* The same of GROUP signals whose numbers lie side by side, as they do afterwards; of fewer, others are zeros. */
static void NAMED(take_columns)(int64_t n, int64_t apart, int64_t count, R sign, const R *restrict x, R *restrict re,
                                R *restrict im)
{
    if (count < GROUP) {
        for (int64_t k = 0; k < n; k++)
            for (int64_t q = 0; q < GROUP; q++) {
                re[k * GROUP + q] = q < count ? x[2 * (apart * k + q)] : 0;
                im[k * GROUP + q] = q < count ? sign * x[2 * (apart * k + q) + 1] : 0;
            }
        return;
    }
    for (int64_t k = 0; k < n; k++)
        FREELY for (int64_t q = 0; q < GROUP; q++)
        {
            re[k * GROUP + q] = x[2 * (apart * k + q)];
            im[k * GROUP + q] = sign * x[2 * (apart * k + q) + 1];
        }
}

static void NAMED(give_columns)(int64_t n, int64_t apart, int64_t count, R factor, R other, const R *restrict re,
                                const R *restrict im, R *restrict y)
{
    for (int64_t k = 0; k < n; k++) {
        R *restrict to = y + 2 * apart * k;
        if (count < GROUP) {
            for (int64_t q = 0; q < count; q++)
                to[2 * q] = factor * re[k * GROUP + q], to[2 * q + 1] = other * im[k * GROUP + q];
            continue;
        }
        FREELY for (int64_t q = 0; q < GROUP; q++)
        {
            to[2 * q] = factor * re[k * GROUP + q];
            to[2 * q + 1] = other * im[k * GROUP + q];
        }
    }
}

/* Registers hold PIECES of PER numbers: two complex ones of floats, one of doubles. */
#define PER (16 / BYTES)
#define PIECES (VECTOR / 16)
#define EVEN_PIECE(lane, n) (lane) / PER * 2 * PER + (lane) % PER
#define ODD_PIECE(lane, n) (lane) / PER * 2 * PER + (lane) % PER + PER
#define LOW_LANES(lane, n) (lane) / PER * PER + (lane) % PER / 2 + (lane) % 2 * (int)LANES
#define HIGH_LANES(lane, n) (lane) / PER * PER + (lane) % PER / 2 + (lane) % 2 * (int)LANES + PER / 2
#define LOW_HALF(lane, n) (lane) / PER * PER + (lane) % 2 + (lane) % PER / 2 * (int)LANES
#define HIGH_HALF(lane, n) (lane) / PER * PER + (lane) % 2 + (lane) % PER / 2 * (int)LANES + PER / 2
#define CHOSEN(x, y, WHICH) LANES_OF(NAMED(BitsVector), x, y, EACH_LANE(WHICH, 0))

/* PIECES registers become their transpose, piece by piece. */
static inline ALWAYS void NAMED(turn_pieces)(NAMED(Vector) *x)
{
#if PIECES > 1
    for (int k = 0; k < PIECES; k += 2) {
        const NAMED(Vector) one = x[k], other = x[k + 1];
        x[k] = CHOSEN(one, other, EVEN_PIECE), x[k + 1] = CHOSEN(one, other, ODD_PIECE);
    }
#endif
#if PIECES > 2
    const NAMED(Vector) even = x[0], odd = x[1];
    x[0] = CHOSEN(even, x[2], EVEN_PIECE), x[1] = CHOSEN(odd, x[3], EVEN_PIECE);
    x[2] = CHOSEN(even, x[2], ODD_PIECE), x[3] = CHOSEN(odd, x[3], ODD_PIECE);
#endif
    (void)x;
}

/* Each piece of PER registers, with those of the same place in the others, becomes its transpose. */
static inline ALWAYS void NAMED(turn_within)(NAMED(Vector) *x)
{
    const NAMED(Vector) low = CHOSEN(x[0], x[1], LOW_LANES), high = CHOSEN(x[0], x[1], HIGH_LANES);
#if PER == 2
    x[0] = low, x[1] = high;
#else
    const NAMED(Vector) next_low = CHOSEN(x[2], x[3], LOW_LANES), next_high = CHOSEN(x[2], x[3], HIGH_LANES);
    x[0] = CHOSEN(low, next_low, LOW_HALF), x[1] = CHOSEN(low, next_low, HIGH_HALF);
    x[2] = CHOSEN(high, next_high, LOW_HALF), x[3] = CHOSEN(high, next_high, HIGH_HALF);
#endif
}

/* The same of GROUP signals that lie `apart` numbers behind each other, by squares of registers that are turned over:
   as many rows as a register has lanes, of each a register of numbers; the last squares have some numbers twice. What
   is shorter than a register goes number by number. */
static void NAMED(take_rows)(int64_t n, int64_t apart, R sign, const R *x, R *re, R *im)
{
    for (int64_t q = 0; n < LANES / 2 && q < GROUP; q++)
        for (int64_t k = 0; k < n; k++)
            re[k * GROUP + q] = x[2 * (apart * q + k)], im[k * GROUP + q] = sign * x[2 * (apart * q + k) + 1];
    if (n < LANES / 2)
        return;
    for (int64_t column = 0; column < n; column += LANES / 2) {
        const int64_t k = column + LANES / 2 <= n ? column : n - LANES / 2;
        for (int64_t first = 0; first < GROUP; first += LANES) {
            NAMED(Vector) rows[PER][PIECES];
            UNROLL
            for (int j = 0; j < PER; j++) {
                UNROLL
                for (int l = 0; l < PIECES; l++)
                    rows[j][l] = *(const NAMED(Vector) *)(x + 2 * (apart * (first + PER * l + j) + k));
                NAMED(turn_pieces)(rows[j]);
            }
            UNROLL
            for (int c = 0; c < PIECES; c++) {
                NAMED(Vector) parts[PER];
                UNROLL
                for (int j = 0; j < PER; j++)
                    parts[j] = rows[j][c];
                NAMED(turn_within)(parts);
                UNROLL
                for (int j = 0; j < PER; j += 2) {
                    const int64_t to = (k + (c * PER + j) / 2) * GROUP + first;
                    *(NAMED(Vector) *)(re + to) = parts[j];
                    *(NAMED(Vector) *)(im + to) = parts[j + 1] * sign;
                }
            }
        }
    }
}

static void NAMED(give_rows)(int64_t n, int64_t apart, R factor, R other, const R *re, const R *im, R *y)
{
    for (int64_t q = 0; n < LANES / 2 && q < GROUP; q++)
        for (int64_t k = 0; k < n; k++)
            y[2 * (apart * q + k)] = factor * re[k * GROUP + q], y[2 * (apart * q + k) + 1] = other * im[k * GROUP + q];
    if (n < LANES / 2)
        return;
    for (int64_t column = 0; column < n; column += LANES / 2) {
        const int64_t k = column + LANES / 2 <= n ? column : n - LANES / 2;
        for (int64_t first = 0; first < GROUP; first += LANES) {
            NAMED(Vector) rows[PER][PIECES];
            UNROLL
            for (int c = 0; c < PIECES; c++) {
                NAMED(Vector) parts[PER];
                UNROLL
                for (int j = 0; j < PER; j += 2) {
                    const int64_t from = (k + (c * PER + j) / 2) * GROUP + first;
                    parts[j] = *(const NAMED(Vector) *)(re + from) * factor;
                    parts[j + 1] = *(const NAMED(Vector) *)(im + from) * other;
                }
                NAMED(turn_within)(parts);
                UNROLL
                for (int j = 0; j < PER; j++)
                    rows[j][c] = parts[j];
            }
            UNROLL
            for (int j = 0; j < PER; j++) {
                NAMED(turn_pieces)(rows[j]);
                UNROLL
                for (int l = 0; l < PIECES; l++)
                    *(NAMED(Vector) *)(y + 2 * (apart * (first + PER * l + j) + k)) = rows[j][l];
            }
        }
    }
}

/* --- real numbers ------------------------------------------------------------------------------------------------- */

/* What halves.h says, of numbers whose parts are apart, of s signals side by side, in place: for k = 1 … half / 2. */
static void NAMED(meet)(int64_t half, int64_t s, R *x_re, R *x_im, const R *turns, R scale, R way, R bend)
{
    int64_t k = 1;
    for (; s == 1 && 2 * (k + AT_ONCE) <= half + 1; k += AT_ONCE) {
        R others[2][AT_ONCE], far[2][AT_ONCE], *const last_re = x_re + half - k, *const last_im = x_im + half - k;
        for (int j = 0; j < AT_ONCE; j++)
            others[0][j] = last_re[-j], others[1][j] = last_im[-j];
        FREELY for (int j = 0; j < AT_ONCE; j++)
        {
            AT_BOTH_ENDS(x_re[k + j], x_im[k + j], others[0][j], others[1][j], k + j)
            far[0][j] = scale * (s_re - d_re), far[1][j] = scale * (d_im - s_im);
            x_re[k + j] = scale * (s_re + d_re), x_im[k + j] = scale * (s_im + d_im);
        }
        for (int j = 0; j < AT_ONCE; j++)
            last_re[-j] = far[0][j], last_im[-j] = far[1][j];
    }
    for (; 2 * k <= half; k++) {
        R *const near_re = x_re + k * s, *const near_im = x_im + k * s;
        R *const far_re = x_re + (half - k) * s, *const far_im = x_im + (half - k) * s;
        FREELY for (int64_t q = 0; q < s; q++)
        {
            AT_BOTH_ENDS(near_re[q], near_im[q], far_re[q], far_im[q], k)
            far_re[q] = scale * (s_re - d_re), far_im[q] = scale * (d_im - s_im);
            near_re[q] = scale * (s_re + d_re), near_im[q] = scale * (s_im + d_im);
        }
    }
}

/* Transforms of pairs become the first half of those of real numbers, and one number more. */
static void NAMED(split_signals)(const EshkolFourier *f, int64_t s, R *re, R *im)
{
    R *const last_re = re + f->n * s, *const last_im = im + f->n * s;
    for (int64_t q = 0; q < s; q++) {
        const R a = re[q], b = im[q];
        re[q] = a + b, last_re[q] = a - b;
        im[q] = last_im[q] = 0;
    }
    NAMED(meet)(f->n, s, re, im, f->turns, (R)0.5, -1, -1);
}

static inline int NAMED(is_joined)(const EshkolFourier *f)
{
    return f->kind == ESHKOL_FOURIER_JOINED || f->kind == ESHKOL_FOURIER_JOINED_TWICE;
}

/* Half of a spectrum becomes that of which pairs of real numbers are the transform. */
static void NAMED(join_signals)(const EshkolFourier *f, int64_t s, R *re, R *im)
{
    const R scale = f->kind == ESHKOL_FOURIER_JOINED_TWICE ? 1 : (R)0.5;
    const R *const last = f->given > f->n ? re + f->n * s : NULL;
    for (int64_t q = 0; q < s; q++) { /* those at the ends are their own conjugates */
        const R one = re[q], other = last == NULL ? 0 : last[q];
        re[q] = one + other, im[q] = one - other;
    }
    NAMED(meet)(f->n, s, re, im, f->turns, scale, 1, 1);
}

/* --- Bluestein ---------------------------------------------------------------------------------------------------- */

/* (re, im) times the numbers of a table. */
static void NAMED(times)(int64_t n, R *restrict re, R *restrict im, const R *restrict by_re, const R *restrict by_im)
{
    FREELY for (int64_t k = 0; k < n; k++)
    {
        const R a = re[k], b = im[k];
        re[k] = a * by_re[k] - b * by_im[k];
        im[k] = a * by_im[k] + b * by_re[k];
    }
}

/* The transform of what stands in two[0] and two[1], by Bluestein; gives the place in two of its real parts, which the
   imaginary ones follow. */
static int NAMED(chirped)(const EshkolFourier *f, R *two[4])
{
    const int64_t n = f->n, length = f->length;
    const R *chirp = f->table; /* which stands behind what the passes read */
    for (int64_t k = 0, s = 1; k < f->passes; k++) {
        const int64_t radix = f->radices[k], half = radix > 8 ? radix / 2 : 0;
        chirp += 2 * (radix - 1) * (length / (s * radix)) + 2 * half * half;
        s *= radix;
    }
    for (int64_t k = n; k < length; k++)
        two[0][k] = two[1][k] = 0;
    NAMED(times)(n, two[0], two[1], chirp, chirp + n);
    int at = 2 * NAMED(passes)(f, 0, length, 1, two[0], two[1], two[2], two[3], f->table, NULL);
    NAMED(times)(length, two[at], two[at + 1], chirp + 2 * n, chirp + 2 * n + length);
    const int other = 2 - at; /* the inverse: with parts exchanged */
    if (NAMED(passes)(f, 0, length, 1, two[at + 1], two[at], two[other + 1], two[other], f->table, NULL))
        at = other;
    NAMED(times)(n, two[at], two[at + 1], chirp, chirp + n);
    return at;
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

/* Where a signal begins, as it comes and goes: numbers. */
static inline int64_t NAMED(begins)(const EshkolFourier *f, int64_t signal, int64_t extent)
{
    return 2 * (signal / f->inner * extent * f->inner + signal % f->inner);
}

/* What is between taking and giving, for s signals side by side; gives where the result is, or 4 if it is given. */
static int NAMED(transform)(const EshkolFourier *f, int64_t s, R *two[4], const NAMED(Target) *target)
{
    if (NAMED(is_joined)(f)) {
        for (int64_t k = f->given * s; k < (f->n + 1) * s; k++)
            two[0][k] = two[1][k] = 0;
        NAMED(join_signals)(f, s, two[0], two[1]);
    }
    if (f->kind == ESHKOL_FOURIER_SPLIT)
        target = NULL;
    const int at = f->length != f->n ? NAMED(chirped)(f, two)
                 : 2 * NAMED(passes)(f, 0, f->n, s, two[0], two[1], two[2], two[3], f->table, target);
    if (f->kind == ESHKOL_FOURIER_SPLIT)
        NAMED(split_signals)(f, s, two[at], two[at + 1]);
    return at;
}

/* GROUP columns. What the first pass makes is as many transforms as its radix says, which stay in the first cache. */
static void NAMED(columns)(const EshkolFourier *f, R before, NAMED(Target) to, int64_t count, const R *in, R *two[4])
{
    const int64_t radix = f->passes > 1 ? f->radices[0] : 1, m = f->n / radix, pitch = m * GROUP + ASIDE;
    if (count == GROUP && f->passes > 1
        && NAMED(first)(radix, m, f->inner, pitch, before, in, two[0], two[1], f->table)) {
        for (int64_t k = 0; k < radix; k++) {
            const NAMED(Target) target = {to.y + 2 * f->inner * k, f->inner * radix, to.factor, to.other};
            R *const four[4] = {two[0] + k * pitch, two[1] + k * pitch, two[2], two[3]};
            const int at = 2 * NAMED(passes)(f, 1, m, GROUP, four[0], four[1], four[2], four[3],
                                             (const R *)f->table + 2 * (radix - 1) * m, &target);
            if (at < 4)
                NAMED(give_columns)(m, target.apart, count, to.factor, to.other, four[at], four[at + 1], target.y);
        }
        return;
    }
    NAMED(take_columns)(f->n, f->inner, count, before, in, two[0], two[1]);
    const int at = NAMED(transform)(f, GROUP, two, count == GROUP ? &to : NULL);
    if (at < 4)
        NAMED(give_columns)(f->n, f->inner, count, to.factor, to.other, two[at], two[at + 1], to.y);
}

static void NAMED(run)(const EshkolFourier *f, int64_t begin, int64_t end, R *work, int64_t pitch)
{
    R *two[4];
    for (int k = 0; k < 4; k++)
        two[k] = work + k * pitch;
    /* The inverse is a transform with conjugates before and behind it; of real numbers those are themselves. */
    const int real = f->kind == ESHKOL_FOURIER_SPLIT, rows = f->inner == 1;
    const R factor = (R)f->factor, before = f->inverse && !real ? -1 : 1;
    const R behind = f->inverse && !NAMED(is_joined)(f) ? -factor : factor;
    const int64_t taken = f->given, given = f->n + real;
    const int64_t groups = (f->inner + GROUP - 1) / GROUP; /* of columns */
    for (int64_t task = begin; task < end; task++) {
        int64_t signal = task, count = 1;
        if (f->together) {
            const int64_t column = rows ? 0 : task % groups * GROUP;
            signal = rows ? task * GROUP : task / groups * f->inner + column;
            count = rows ? f->signals - signal : f->inner - column;
            count = count < GROUP ? count : GROUP;
            const R *in = (const R *)f->in + NAMED(begins)(f, signal, taken);
            const NAMED(Target) target = {(R *)f->out + NAMED(begins)(f, signal, given), f->inner, factor, behind};
            if (!rows && count > FEW) {
                NAMED(columns)(f, before, target, count, in, two);
                continue;
            }
            if (rows && count == GROUP) {
                NAMED(take_rows)(taken, taken, before, in, two[0], two[1]);
                const int at = NAMED(transform)(f, GROUP, two, NULL);
                NAMED(give_rows)(given, given, factor, behind, two[at], two[at + 1], target.y);
                continue;
            }
        }
        for (const int64_t last = signal + count; signal < last; signal++) {
            const NAMED(Target) target = {(R *)f->out + NAMED(begins)(f, signal, given), f->inner, factor, behind};
            NAMED(take)(taken, f->inner, before, (const R *)f->in + NAMED(begins)(f, signal, taken), two[0], two[1]);
            const int at = NAMED(transform)(f, 1, two, rows ? &target : NULL);
            if (at < 4)
                NAMED(give)(given, f->inner, factor, behind, two[at], two[at + 1], target.y);
        }
    }
}
#undef CHOSEN
#undef HIGH_HALF
#undef LOW_HALF
#undef HIGH_LANES
#undef LOW_LANES
#undef ODD_PIECE
#undef EVEN_PIECE
#undef PIECES
#undef PER
#undef P
