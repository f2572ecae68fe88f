/* What stands around real transforms (halves.h), for parts of one type: R, and NAMED, which gives names of their own.

   With a at k and b at n/2 - k, s = a + conj(b) and d = ±i·w^k·(a - conj(b)), the results there are s + d and
   conj(s - d), whichever way it goes. */
#define AT_BOTH_ENDS(A_RE, A_IM, B_RE, B_IM, K)                                                                        \
    const R a_re = A_RE, a_im = A_IM, b_re = B_RE, b_im = B_IM, s_re = a_re + b_re, s_im = a_im - b_im;                \
    const R less_re = a_re - b_re, less_im = a_im + b_im, re = way * turns[2 * (K)], im = bend * turns[2 * (K) + 1];   \
    const R d_re = -(re * less_im + im * less_re), d_im = re * less_re - im * less_im;

/* The same for some k at once: b and what comes to its place stand the other way round, so they go by way of arrays,
   and everything between is done in vectors. Gives the first k that is left over. */
#define AT_ONCE 16
static int64_t NAMED(some_at_once)(const R *restrict x, const R *restrict turns, R *restrict out, int64_t half,
                                   int64_t from, int64_t to, R scale, R way, R bend)
{
    R other[2 * AT_ONCE], far[2 * AT_ONCE];
    for (; from + AT_ONCE <= to; from += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++)
            memcpy(other + 2 * k, x + 2 * (half - from - k), 2 * sizeof(R));
        FREELY for (int k = 0; k < AT_ONCE; k++)
        {
            AT_BOTH_ENDS(x[2 * (from + k)], x[2 * (from + k) + 1], other[2 * k], other[2 * k + 1], from + k)
            far[2 * k] = scale * (s_re - d_re), far[2 * k + 1] = scale * (d_im - s_im);
            out[2 * (from + k)] = scale * (s_re + d_re), out[2 * (from + k) + 1] = scale * (s_im + d_im);
        }
        for (int k = 0; k < AT_ONCE; k++)
            memcpy(out + 2 * (half - from - k), far + 2 * k, 2 * sizeof(R));
    }
    return from;
}

/* Results at k and at n/2 - k for k = from … to - 1. */
static void NAMED(split)(const EshkolHalves *h, int64_t row, int64_t from, int64_t to)
{
    const int64_t half = h->half;
    const R *restrict z = (const R *)h->in + 2 * row * half, *restrict turns = h->turns;
    R *restrict out = (R *)h->out + 2 * row * (half + 1);
    const R scale = (R)(h->factor / 2), way = -1, bend = h->inverse ? 1 : -1;
    const int64_t left = NAMED(some_at_once)(z, turns, out, half, from ? from : 1, to, scale, way, bend);
    for (int64_t k = from ? left : 0; k < to; k = k ? k + 1 : left) {
        const R *b = z + (k ? 2 * (half - k) : 0);
        AT_BOTH_ENDS(z[2 * k], z[2 * k + 1], b[0], b[1], k)
        out[2 * (half - k)] = scale * (s_re - d_re);
        out[2 * (half - k) + 1] = scale * (d_im - s_im);
        out[2 * k] = scale * (s_re + d_re);
        out[2 * k + 1] = scale * (s_im + d_im);
    }
}

static void NAMED(joined)(const EshkolHalves *h, int64_t row, int64_t from, int64_t to)
{
    const int64_t half = h->half, given = h->given;
    const R *restrict g = (const R *)h->in + 2 * row * given, *restrict turns = h->turns;
    R *restrict out = (R *)h->out + 2 * row * half;
    const R ends = (R)h->factor, scale = h->twice ? ends : ends / 2, way = 1, bend = h->inverse ? -1 : 1;
    if (from == 0) { /* those at the ends are their own conjugates */
        const R one = g[0], other = half < given ? g[2 * half] : 0;
        out[0] = ends * (one + other);
        out[1] = ends * (one - other);
        from = 1;
    }
    if (half < given)
        from = NAMED(some_at_once)(g, turns, out, half, from, to, scale, way, bend);
    for (int64_t k = from; k < to; k++) {
        const int64_t far = half - k;
        AT_BOTH_ENDS(k < given ? g[2 * k] : 0, k < given ? g[2 * k + 1] : 0, far < given ? g[2 * far] : 0,
                     far < given ? g[2 * far + 1] : 0, k)
        out[2 * far] = scale * (s_re - d_re);
        out[2 * far + 1] = scale * (d_im - s_im);
        out[2 * k] = scale * (s_re + d_re);
        out[2 * k + 1] = scale * (s_im + d_im);
    }
}
