/* See halves.h. */
#include "halves.h"

/* The piece that a task is: of row *row, elements *from … *to - 1 of `length`. */
static void piece(int64_t task, int64_t length, int64_t *row, int64_t *from, int64_t *to)
{
    const int64_t pieces = (length + ESHKOL_HALVES_PIECE - 1) / ESHKOL_HALVES_PIECE;
    *row = task / pieces;
    *from = task % pieces * ESHKOL_HALVES_PIECE;
    *to = length - *from < ESHKOL_HALVES_PIECE ? length : *from + ESHKOL_HALVES_PIECE;
}

#define HALVES(R, NAME)                                                                                             \
    static void split_##NAME(const EshkolHalves *h, int64_t task)                                                   \
    {                                                                                                               \
        int64_t row, from, to;                                                                                      \
        piece(task, h->half + 1, &row, &from, &to);                                                                 \
        const R *z = (const R *)h->in + 2 * row * h->half, *turns = h->turns;                                       \
        R *out = (R *)h->out + 2 * row * (h->half + 1);                                                             \
        const R scale = (R)(h->factor / 2), sign = h->inverse ? -1 : 1;                                             \
        for (int64_t k = from; k < to; k++) {                                                                       \
            const R *a = z + 2 * (k < h->half ? k : 0), *b = z + 2 * (k > 0 ? h->half - k : 0);                      \
            const R even_re = a[0] + b[0], even_im = a[1] - b[1], odd_re = a[1] + b[1], odd_im = b[0] - a[0];       \
            const R re = turns[2 * k], im = sign * turns[2 * k + 1];                                                \
            out[2 * k] = scale * (even_re + (re * odd_re - im * odd_im));                                           \
            out[2 * k + 1] = scale * (even_im + (re * odd_im + im * odd_re));                                       \
        }                                                                                                           \
    }                                                                                                               \
                                                                                                                    \
    static void joined_##NAME(const EshkolHalves *h, int64_t task)                                                  \
    {                                                                                                               \
        int64_t row, from, to;                                                                                      \
        piece(task, h->half, &row, &from, &to);                                                                     \
        const R *g = (const R *)h->in + 2 * row * h->given, *turns = h->turns;                                      \
        R *out = (R *)h->out + 2 * row * h->half;                                                                   \
        const R scale = (R)(h->factor / 2), sign = h->inverse ? -1 : 1;                                             \
        for (int64_t k = from; k < to; k++) {                                                                       \
            const int64_t other = h->half - k;                                                                      \
            R a_re = 0, a_im = 0, b_re = 0, b_im = 0;                                                               \
            if (k < h->given) {                                                                                     \
                a_re = g[2 * k];                                                                                    \
                a_im = g[2 * k + 1];                                                                                \
            }                                                                                                       \
            if (other < h->given) {                                                                                 \
                b_re = g[2 * other];                                                                                \
                b_im = -g[2 * other + 1];                                                                           \
            }                                                                                                       \
            if (k == 0) { /* its own conjugate, as that in the middle is */                                         \
                a_re *= 2;                                                                                          \
                b_re *= 2;                                                                                          \
                a_im = b_im = 0;                                                                                    \
            }                                                                                                       \
            const R re = turns[2 * k], im = sign * turns[2 * k + 1];                                                \
            const R less_re = a_re - b_re, less_im = a_im - b_im;                                                   \
            out[2 * k] = scale * ((a_re + b_re) - (re * less_im + im * less_re));                                   \
            out[2 * k + 1] = scale * ((a_im + b_im) + (re * less_re - im * less_im));                               \
        }                                                                                                           \
    }

HALVES(float, f32)
HALVES(double, f64)

void eshkol_halves_split(void *context, int64_t begin, int64_t end)
{
    const EshkolHalves *halves = context;
    for (int64_t task = begin; task < end; task++)
        (halves->wide ? split_f64 : split_f32)(halves, task);
}

void eshkol_halves_joined(void *context, int64_t begin, int64_t end)
{
    const EshkolHalves *halves = context;
    for (int64_t task = begin; task < end; task++)
        (halves->wide ? joined_f64 : joined_f32)(halves, task);
}
