/* Transforms of parts of one type: R is the type, NAMED gives names of their own to what is defined here. */

/* What a pass reads and writes, and its table: arrays of m numbers. */
typedef struct {
    const R *xr, *xi;
    R *yr, *yi;
    const R *w;
} NAMED(Pass);
#define P NAMED(Pass)
#define SHORT 8

/* A butterfly over elements named a0 …, of which CODE makes b0 … Columns p lie side by side where s is 1; else the
   numbers q of one column do, which are turned alike. What has one column is not turned. */
#define ELEMENT(J) const R a##J##r = xr[STEP(J)], a##J##i = xi[STEP(J)];
#define KEEP(K) yr[PLACE(K)] = b##K##r, yi[PLACE(K)] = b##K##i;
#define TURN(K)                                                                                                        \
    yr[PLACE(K)] = b##K##r * w##K##r - b##K##i * w##K##i, yi[PLACE(K)] = b##K##r * w##K##i + b##K##i * w##K##r;
#define FACTOR(K) const R w##K##r = w[2 * (K - 1) * m + p], w##K##i = w[(2 * (K - 1) + 1) * m + p];
#define ROWS_OF(S, ALL, OTHERS, CODE)                                                                                  \
    for (int64_t p = 0; p < m; p++) {                                                                                  \
        OTHERS(FACTOR)                                                                                                 \
        FREELY for (int64_t q = 0; q < S; q++)                                                                         \
        {                                                                                                              \
            ALL(ELEMENT) CODE() KEEP(0) OTHERS(TURN)                                                                   \
        }                                                                                                              \
    }
#define PASS(RADIX, ALL, OTHERS, CODE)                                                                                 \
    static void NAMED(pass##RADIX)(int64_t m, int64_t s, const P *pass)                                                \
    {                                                                                                                  \
        const R *restrict xr = pass->xr, *restrict xi = pass->xi, *restrict w = pass->w;                               \
        R *restrict yr = pass->yr, *restrict yi = pass->yi;                                                            \
        if (m == 1) {                                                                                                  \
            FREELY for (int64_t q = 0; q < s; q++)                                                                     \
            {                                                                                                          \
                const int64_t p = 0;                                                                                   \
                ALL(ELEMENT) CODE() KEEP(0) OTHERS(KEEP)                                                               \
            }                                                                                                          \
        } else if (s == 1) {                                                                                           \
            FREELY for (int64_t p = 0; p < m; p++)                                                                     \
            {                                                                                                          \
                const int64_t q = 0;                                                                                   \
                ALL(ELEMENT) CODE() OTHERS(FACTOR) KEEP(0) OTHERS(TURN)                                                \
            }                                                                                                          \
        } else if (s == SHORT) { /* as after a first pass of radix 8: one vector, not a loop of some */                \
            ROWS_OF(SHORT, ALL, OTHERS, CODE)                                                                          \
        } else if (s == GROUP) { /* as in the first pass of signals side by side */                                    \
            ROWS_OF(GROUP, ALL, OTHERS, CODE)                                                                          \
        } else {                                                                                                       \
            ROWS_OF(s, ALL, OTHERS, CODE)                                                                              \
        }                                                                                                              \
    }

/* The first pass of GROUP signals that stand as columns, `apart` numbers from one row to the next, from pairs of parts
   on; what it makes of each number K is put by itself, as columns of m rows, `pitch` parts behind what it makes of the
   one before: of each K the rest of the transform is one of length m. */
#define PAIR(J)                                                                                                        \
    const R a##J##r = x[2 * (apart * (p + m * J) + q)], a##J##i = sign * x[2 * (apart * (p + m * J) + q) + 1];
#define FIRST(RADIX, ALL, OTHERS, CODE)                                                                                \
    static void NAMED(first##RADIX)(int64_t m, int64_t apart, int64_t pitch, R sign, const R *restrict x,              \
                                    R *restrict yr, R *restrict yi, const R *restrict w)                               \
    {                                                                                                                  \
        for (int64_t p = 0; p < m; p++) {                                                                              \
            OTHERS(FACTOR)                                                                                             \
            FREELY for (int64_t q = 0; q < GROUP; q++)                                                                 \
            {                                                                                                          \
                ALL(PAIR) CODE() APART_KEEP(0) OTHERS(APART_TURN)                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
#define APART_PLACE(K) q + GROUP * p + pitch * K
#define APART_KEEP(K) yr[APART_PLACE(K)] = b##K##r, yi[APART_PLACE(K)] = b##K##i;
#define APART_TURN(K)                                                                                                  \
    yr[APART_PLACE(K)] = b##K##r * w##K##r - b##K##i * w##K##i,                                                        \
                    yi[APART_PLACE(K)] = b##K##r * w##K##i + b##K##i * w##K##r;

/* The last pass, to pairs of parts: over so many rows of each result, `apart` numbers behind each other, of `wide`
   numbers side by side. */
#define GIVEN(K)                                                                                                       \
    y[2 * (apart * (row + rows * K) + q)] = factor * b##K##r,                                                          \
                                  y[2 * (apart * (row + rows * K) + q) + 1] = other * b##K##i;
#define LAST_ROWS(WIDE, ALL, CODE)                                                                                     \
    for (int64_t row = 0; row < rows; row++)                                                                           \
        FREELY for (int64_t q = 0; q < WIDE; q++) { ALL(LATELY) CODE() ALL(GIVEN) }
#define LATELY(J)                                                                                                      \
    const R a##J##r = xr[q + wide * (row + rows * J)], a##J##i = xi[q + wide * (row + rows * J)];
#define LAST(RADIX, ALL, CODE)                                                                                         \
    static void NAMED(last##RADIX)(int64_t rows, int64_t wide, int64_t apart, R factor, R other, const P *pass,        \
                                   R *restrict y)                                                                      \
    {                                                                                                                  \
        const R *restrict xr = pass->xr, *restrict xi = pass->xi;                                                      \
        if (wide == GROUP) {                                                                                           \
            LAST_ROWS(GROUP, ALL, CODE)                                                                                \
        } else {                                                                                                       \
            LAST_ROWS(wide, ALL, CODE)                                                                                 \
        }                                                                                                              \
    }
#define PASSES(RADIX, ALL, OTHERS, CODE)                                                                               \
    PASS(RADIX, ALL, OTHERS, CODE) FIRST(RADIX, ALL, OTHERS, CODE) LAST(RADIX, ALL, CODE)

#define STEP(J) q + s *(p + m * J)
#define PLACE(K) q + s *(RADIX_OF * p + K)

#define TO1(F) F(1)
#define TO2(F) TO1(F) F(2)
#define TO3(F) TO2(F) F(3)
#define TO4(F) TO3(F) F(4)
#define TO6(F) TO4(F) F(5) F(6)
#define TO7(F) TO6(F) F(7)
#define FROM(TO, F) F(0) TO(F)
#define ALL2(F) FROM(TO1, F)
#define ALL3(F) FROM(TO2, F)
#define ALL4(F) FROM(TO3, F)
#define ALL5(F) FROM(TO4, F)
#define ALL7(F) FROM(TO6, F)
#define ALL8(F) FROM(TO7, F)

/* Sum and difference of two numbers, and one number less and plus i times another. */
#define BOTH(S, D, A, B)                                                                                               \
    const R S##r = A##r + B##r, S##i = A##i + B##i, D##r = A##r - B##r, D##i = A##i - B##i;
#define CROSS(LESS, PLUS, C, D)                                                                                        \
    const R LESS##r = C##r + D##i, LESS##i = C##i - D##r, PLUS##r = C##r - D##i, PLUS##i = C##i + D##r;
/* The transform of four numbers. */
#define FOUR(B0, B1, B2, B3, A0, A1, A2, A3)                                                                           \
    BOTH(B0##s, B0##d, A0, A2) BOTH(B0##t, B0##u, A1, A3) BOTH(B0, B2, B0##s, B0##t) CROSS(B1, B3, B0##d, B0##u)

#define TWO() BOTH(b0, b1, a0, a1)
#define RADIX_OF 2
PASSES(2, ALL2, TO1, TWO)
#undef RADIX_OF

#define QUARTERS() FOUR(b0, b1, b2, b3, a0, a1, a2, a3)
#define RADIX_OF 4
PASSES(4, ALL4, TO3, QUARTERS)
#undef RADIX_OF

#define HALF_ROOT (R)0.70710678118654752440
#define EIGHT()                                                                                                        \
    FOUR(e0, e1, e2, e3, a0, a2, a4, a6) FOUR(o0, o1, o2, o3, a1, a3, a5, a7)                                          \
    const R f1r = (o1r + o1i) * HALF_ROOT, f1i = (o1i - o1r) * HALF_ROOT;                                              \
    const R f3r = (o3i - o3r) * HALF_ROOT, f3i = -(o3r + o3i) * HALF_ROOT;                                             \
    BOTH(b0, b4, e0, o0) BOTH(b1, b5, e1, f1) CROSS(b2, b6, e2, o2) BOTH(b3, b7, e3, f3)
#define RADIX_OF 8
PASSES(8, ALL8, TO7, EIGHT)
#undef RADIX_OF

#define SINE3 (R)0.86602540378443864676
#define THREE()                                                                                                        \
    BOTH(t, u, a1, a2)                                                                                                 \
    const R b0r = a0r + tr, b0i = a0i + ti, cr = a0r - tr / 2, ci = a0i - ti / 2, dr = ur * SINE3, di = ui * SINE3;    \
    CROSS(b1, b2, c, d)
#define RADIX_OF 3
PASSES(3, ALL3, TO2, THREE)
#undef RADIX_OF

#define C51 (R)0.30901699437494742410
#define C52 (R)-0.80901699437494742410
#define S51 (R)0.95105651629515357212
#define S52 (R)0.58778525229247312917
#define FIVE()                                                                                                         \
    BOTH(t, v, a1, a4) BOTH(u, z, a2, a3)                                                                              \
    const R b0r = a0r + tr + ur, b0i = a0i + ti + ui;                                                                  \
    const R cr = a0r + C51 * tr + C52 * ur, ci = a0i + C51 * ti + C52 * ui;                                            \
    const R dr = a0r + C52 * tr + C51 * ur, di = a0i + C52 * ti + C51 * ui;                                            \
    const R er = S51 * vr + S52 * zr, ei = S51 * vi + S52 * zi, fr = S52 * vr - S51 * zr, fi = S52 * vi - S51 * zi;    \
    CROSS(b1, b4, c, e) CROSS(b2, b3, d, f)
#define RADIX_OF 5
PASSES(5, ALL5, TO4, FIVE)
#undef RADIX_OF

#define C71 (R)0.62348980185873353053
#define C72 (R)-0.22252093395631440429
#define C73 (R)-0.90096886790241912624
#define S71 (R)0.78183148246802980871
#define S72 (R)0.97492791218182360702
#define S73 (R)0.43388373911755812048
#define SEVENTH(C, D, X1, X2, X3, Y1, Y2, Y3)                                                                          \
    const R C##r = a0r + X1 * tr + X2 * ur + X3 * vr, C##i = a0i + X1 * ti + X2 * ui + X3 * vi;                        \
    const R D##r = Y1 * dr + Y2 * er + Y3 * fr, D##i = Y1 * di + Y2 * ei + Y3 * fi;
#define SEVEN()                                                                                                        \
    BOTH(t, d, a1, a6) BOTH(u, e, a2, a5) BOTH(v, f, a3, a4)                                                           \
    const R b0r = a0r + tr + ur + vr, b0i = a0i + ti + ui + vi;                                                        \
    SEVENTH(g, h, C71, C72, C73, S71, S72, S73) SEVENTH(k, l, C72, C73, C71, S72, -S73, -S71)                          \
    SEVENTH(n, o, C73, C71, C72, S73, -S71, S72)                                                                       \
    CROSS(b1, b6, g, h) CROSS(b2, b5, k, l) CROSS(b3, b4, n, o)
#define RADIX_OF 7
PASSES(7, ALL7, TO6, SEVEN)
#undef RADIX_OF

/* Any other odd radix, number by number, by its sums: what is beside the first number in pairs, all results at once. */
static void NAMED(pass_any)(int64_t radix, int64_t m, int64_t s, const P *pass)
{
    enum { HALF = ESHKOL_FOURIER_GREATEST / 2 };
    const int64_t half = radix / 2;
    const R *cosines = pass->w, *sines = cosines + half * half, *w = sines + half * half;
    for (int64_t p = 0; p < m; p++)
        for (int64_t q = 0; q < s; q++) {
            const R *xr = pass->xr + q + s * p, *xi = pass->xi + q + s * p;
            R *yr = pass->yr + q + s * radix * p, *yi = pass->yi + q + s * radix * p;
            const int64_t far = s * m;
            R even_re[HALF], even_im[HALF], odd_re[HALF], odd_im[HALF], whole_re = xr[0], whole_im = xi[0];
            for (int64_t k = 0; k < half; k++)
                even_re[k] = xr[0], even_im[k] = xi[0], odd_re[k] = 0, odd_im[k] = 0;
            for (int64_t j = 1; j <= half; j++) {
                const R one_re = xr[far * j], one_im = xi[far * j];
                const R other_re = xr[far * (radix - j)], other_im = xi[far * (radix - j)];
                const R sum_re = one_re + other_re, sum_im = one_im + other_im;
                const R less_re = one_re - other_re, less_im = one_im - other_im;
                const R *cosine = cosines + (j - 1) * half, *sine = sines + (j - 1) * half;
                whole_re += sum_re, whole_im += sum_im;
                FREELY for (int64_t k = 0; k < half; k++)
                {
                    even_re[k] += cosine[k] * sum_re, even_im[k] += cosine[k] * sum_im;
                    odd_re[k] += sine[k] * less_re, odd_im[k] += sine[k] * less_im;
                }
            }
            yr[0] = whole_re, yi[0] = whole_im;
            for (int64_t k = 1; k < radix; k++) {
                const int64_t at = (k <= half ? k : radix - k) - 1;
                const R sign = k <= half ? 1 : -1;
                const R re = even_re[at] + sign * odd_im[at], im = even_im[at] - sign * odd_re[at];
                const R wr = w[2 * (k - 1) * m + p], wi = w[(2 * (k - 1) + 1) * m + p];
                yr[s * k] = re * wr - im * wi, yi[s * k] = re * wi + im * wr;
            }
        }
}

#define EACH_RADIX(DO) DO(2) DO(3) DO(4) DO(5) DO(7) DO(8)

/* A pass of any radix. */
static void NAMED(pass)(int64_t radix, int64_t m, int64_t s, const P *pass)
{
#define ONE(RADIX)                                                                                                     \
    case RADIX: NAMED(pass##RADIX)(m, s, pass); break;
    switch (radix) {
        EACH_RADIX(ONE)
    default: NAMED(pass_any)(radix, m, s, pass);
    }
#undef ONE
}

/* The first one of columns, if the radix has code of its own. */
static int NAMED(first)(int64_t radix, int64_t m, int64_t apart, int64_t pitch, R sign, const R *x, R *re, R *im,
                        const R *w)
{
#define ONE(RADIX)                                                                                                     \
    case RADIX: NAMED(first##RADIX)(m, apart, pitch, sign, x, re, im, w); return 1;
    switch (radix) {
        EACH_RADIX(ONE)
    }
#undef ONE
    return 0;
}

static int NAMED(last)(int64_t radix, int64_t rows, int64_t wide, int64_t apart, R factor, R other, const P *pass, R *y)
{
#define ONE(RADIX)                                                                                                     \
    case RADIX: NAMED(last##RADIX)(rows, wide, apart, factor, other, pass, y); return 1;
    switch (radix) {
        EACH_RADIX(ONE)
    }
#undef ONE
    return 0;
}

/* Where results go that are pairs of parts: each so far behind the one before, times factors. */
typedef struct {
    R *y;
    int64_t apart;
    R factor, other;
} NAMED(Target);

/* The passes from a number on, over so many signals of a length side by side, from (re, im) on, with (other_re,
   other_im) to work in and a table from these passes on. The last of them writes to the target, if there is one and the
   radix has code for it. Gives which of both holds the result, or 2 if the target does. */
static int NAMED(passes)(const EshkolFourier *f, int64_t from, int64_t length, int64_t together, R *re, R *im,
                         R *other_re, R *other_im, const R *table, const NAMED(Target) *target)
{
    P pass = {re, im, other_re, other_im, table};
    int64_t s = together, m = length;
    for (int64_t k = from; k < f->passes; k++) {
        const int64_t radix = f->radices[k];
        m /= radix;
        if (target && k + 1 == f->passes) {
            const int alone = together == 1;
            const int64_t rows = alone ? 1 : s / together, wide = alone ? s : together;
            const int64_t apart = alone ? s : target->apart;
            if (NAMED(last)(radix, rows, wide, apart, target->factor, target->other, &pass, target->y))
                return 2;
        }
        NAMED(pass)(radix, m, s, &pass);
        pass.w += 2 * (radix - 1) * m + (radix > 8 ? 2 * (radix / 2) * (radix / 2) : 0);
        s *= radix;
        R *const was_re = pass.yr, *const was_im = pass.yi;
        pass.yr = was_re == re ? other_re : re, pass.yi = was_im == im ? other_im : im;
        pass.xr = was_re, pass.xi = was_im;
    }
    return (int)((f->passes - from) % 2);
}
