/* Linear algebra at random, under sanitizers: every function, dtype and size, with numbers of every kind, in memory
   that ends where the matrices do. Of factors it is looked at that they give the matrix back. LAPACK is a stand-in that
   writes all that it may. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linear/linear.h"
#include "held.h"
#include "scratch.h"

static uint64_t state = 88172645463325252u;

static uint64_t drawn(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static double number(int wild)
{
    static const double strange[] = {0, -0.0, 1e-300, 1e300, 1e-40, INFINITY, NAN, 1};
    return wild && drawn(8) == 0 ? strange[drawn(8)] : (double)drawn(1 << 20) / (1 << 19) - 1;
}

/* --- a stand-in for LAPACK: the same numbers everywhere, as many as there is room for ----------------------------- */

static size_t part; /* bytes of a number's part, and how many parts it has */
static int parts;

static void put(void *x, int64_t count, double value)
{
    for (int64_t i = 0; i < count * parts; i++)
        if (part == 4)
            ((float *)x)[i] = (float)value;
        else
            ((double *)x)[i] = value;
}

static void put_real(void *x, int64_t count, double value)
{
    const int before = parts;
    parts = 1;
    put(x, count, value);
    parts = before;
}

/* LAPACK's own functions have these arguments, one more where numbers are complex. */
static void eigh(char *job, char *side, int32_t *n, void *a, int32_t *lda, void *w, void *work, int32_t *lwork, void *p,
                 void *q, void *r, void *s, void *t)
{
    (void)side, (void)lda;
    int32_t *count = parts == 1 ? p : r, *given = parts == 1 ? q : s, *info = parts == 1 ? r : t;
    *info = 0;
    if (*lwork == -1) {
        put(work, 1, 7);
        *count = 5;
        if (parts == 2)
            put_real(p, 1, 6);
        return;
    }
    put(work, *lwork, 1);
    for (int32_t k = 0; k < *given; k++)
        count[k] = k;
    if (parts == 2)
        put_real(p, *(int32_t *)q, 1);
    put_real(w, *n, 1);
    put(a, (int64_t)*n * *n, *job == 'V' ? 0.5 : 0);
}

static void svd(char *job, int32_t *m, int32_t *n, void *a, int32_t *lda, void *s, void *u, int32_t *ldu, void *v,
                int32_t *ldv, void *work, int32_t *lwork, void *p, void *q, void *r)
{
    (void)lda, (void)ldu;
    const int64_t least = *m < *n ? *m : *n, wide = *job == 'A' ? *m : least;
    int32_t *count = parts == 1 ? p : q, *info = parts == 1 ? q : r;
    *info = 0;
    if (*lwork == -1) {
        put(work, 1, 9);
        return;
    }
    put(work, *lwork, 1);
    for (int64_t k = 0; k < 8 * least; k++)
        count[k] = 1;
    if (parts == 2)
        put_real(p, 5 * least * least + 5 * least, 1);
    put(a, (int64_t)*m * *n, 1);
    put_real(s, least, 1);
    if (*job != 'N') {
        put(u, *m * wide, 1);
        put(v, (int64_t)*ldv * *n, 1);
    }
}

static void eig(char *left, char *job, int32_t *n, void *a, int32_t *lda, void *w, void *x, void *y, void *z, void *vr,
                void *b, void *c, void *d, int32_t *e)
{
    /* real: … w, wi, vl, ldvl, vr, ldvr, work, lwork, info;
       complex: … w, vl, ldvl, vr, ldvr, work, lwork, rwork, info */
    (void)left, (void)lda, (void)y, (void)z;
    void *work = parts == 1 ? c : b, *vectors = parts == 1 ? vr : z;
    int32_t *lwork = parts == 1 ? d : c;
    *e = 0;
    if (*lwork == -1) {
        put(work, 1, 11);
        return;
    }
    put(work, *lwork, 1);
    put(w, *n, 1);
    if (parts == 1)
        for (int32_t k = 0; k < *n; k++) /* pairs, and numbers between them */
            put((char *)x + (size_t)k * part, 1, k % 3 == 2 || (k % 3 == 0 && k + 1 == *n) ? 0 : k % 3 == 0 ? 1 : -1);
    else
        put_real(d, 2 * *n, 1);
    put(a, (int64_t)*n * *n, 1);
    if (*job == 'V')
        put(vectors, (int64_t)*n * *n, 1);
}

/* --- what is tried ------------------------------------------------------------------------------------------------ */

static void *room(int64_t bytes) { return malloc(bytes > 0 ? (size_t)bytes : 1); }

static double complex at(const void *x, int64_t i)
{
    const double re = part == 4 ? (double)((const float *)x)[i * parts] : ((const double *)x)[i * parts];
    if (parts == 1)
        return re;
    return re + I * (part == 4 ? (double)((const float *)x)[i * 2 + 1] : ((const double *)x)[i * 2 + 1]);
}

static void must(int is, const char *what)
{
    if (!is) {
        printf("linear: %s\n", what);
        exit(1);
    }
}

static void of_qr(const EshkolLinear *l, int64_t number)
{
    const int64_t m = l->rows, n = l->columns;
    const double bound = 64 * (double)m * (part == 4 ? 1.2e-7 : 2.3e-16);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double complex sum = -at(l->in[0], number * m * n + i * n + j);
            for (int64_t k = 0; k < n; k++)
                sum += at(l->out[0], number * m * n + i * n + k) * at(l->out[1], number * n * n + k * n + j);
            must(cabs(sum) <= bound, "Q · R is not the matrix");
        }
}

static void of_solution(const EshkolLinear *l, int64_t number, const void *given)
{
    const int64_t n = l->rows, columns = l->columns;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < columns; j++) {
            double complex sum = -at(l->in[1], (number * n + i) * columns + j);
            for (int64_t k = 0; k < n; k++) {
                const int64_t place = l->flags ? k * n + i : i * n + k;
                sum += at(given, number * n * n + place) * at(l->out[0], (number * n + k) * columns + j);
            }
            must(cabs(sum) <= (double)n * 100 * (part == 4 ? 1.2e-7 : 2.3e-16), "a solution is none");
        }
}

static void tried(eshkol_scheduler *pool)
{
    static const eshkol_body bodies[] = {
        eshkol_linear_solve, eshkol_linear_triangle, eshkol_linear_cholesky, eshkol_linear_det, eshkol_linear_slogdet,
        eshkol_linear_lu, eshkol_linear_eigh, eshkol_linear_svd, eshkol_linear_eig, eshkol_linear_qr,
        eshkol_linear_nearest,
    };
    enum { SOLVE, TRIANGLE, CHOLESKY, DET, SLOGDET, LU, EIGH, SVD, EIG, QR, NEAREST, KINDS };
    const int kind = (int)drawn(KINDS), dtype = (int)drawn(ESHKOL_LINEAR_DTYPES), wild = drawn(3) == 0;
    const int64_t limit = drawn(8) == 0 ? 90 : 20, batch = 1 + (int64_t)drawn(drawn(4) == 0 ? 40 : 5);
    part = dtype % 2 == 0 ? 4 : 8, parts = dtype < 2 ? 1 : 2;
    int64_t rows = 1 + (int64_t)drawn((uint64_t)limit), columns = 1 + (int64_t)drawn((uint64_t)limit);
    const int right = kind == SOLVE || kind == TRIANGLE, any = kind == SVD || kind == LU || kind >= QR || right;
    columns = any ? columns : rows;
    if (kind == QR && columns > rows) {
        const int64_t wide = columns;
        columns = rows, rows = wide;
    }
    const int64_t wide = right ? rows : columns, most = rows > columns ? rows : columns, size = (int64_t)part * parts;
    const int64_t sides = kind == NEAREST ? 1 + (int64_t)drawn(20) : columns; /* right sides */
    EshkolLinear *l = calloc(1, sizeof *l + sizeof(EshkolBatchAxis));
    void *a = room(batch * rows * wide * size), *b = room(batch * rows * sides * size);
    for (int64_t i = 0; i < batch * rows * wide * parts; i++) {
        const double on = right && i / parts % (rows * rows) % (rows + 1) == 0 && i % parts == 0 ? 3 * (double)rows : 0;
        part == 4 ? (void)(((float *)a)[i] = (float)(number(wild) + on)) : (void)(((double *)a)[i] = number(wild) + on);
    }
    for (int64_t i = 0; i < batch * rows * sides * parts; i++)
        part == 4 ? (void)(((float *)b)[i] = (float)number(wild)) : (void)(((double *)b)[i] = number(wild));
    l->fault = ESHKOL_LINEAR_FINE;
    l->lapack = kind == EIGH ? (void *)eigh : kind == SVD || kind == NEAREST ? (void *)svd : (void *)eig;
    const int square = kind == EIGH || kind == EIG || kind == SVD || kind == QR; /* every result, not the first alone */
    for (int k = 0; k < 4; k++)
        l->out[k] = room(batch * (kind == NEAREST ? columns * sides : k == 0 || square ? most * most : most)
                         * (size > 8 ? size : 8) * (kind == EIG ? 2 : 1));
    l->in[0] = a, l->in[1] = b, l->pool = drawn(2) ? &pool : NULL;
    l->dtype = dtype, l->rows = rows, l->columns = columns, l->rank = 1;
    l->flags = (int64_t)drawn(kind == TRIANGLE ? 8 : kind == SVD ? 3 : kind == EIGH || kind == EIG ? 2 : 1);
    l->sides = kind == NEAREST ? sides : 0, l->cutoff = drawn(2) ? 1e-3 : 1e-14;
    l->batch[0] = (EshkolBatchAxis){batch, {1, 1}};
    bodies[kind](l, 0, batch);
    must(kind == TRIANGLE || wild || kind == CHOLESKY || l->fault == ESHKOL_LINEAR_FINE, "a fault that is none");
    for (int64_t k = 0; k < batch && !wild && kind == QR; k++)
        of_qr(l, k);
    for (int64_t k = 0; k < batch && !wild && kind == SOLVE; k++)
        of_solution(l, k, a);
    if (kind == SOLVE) { /* and by its factors */
        EshkolLinear *f = calloc(1, sizeof *f + sizeof(EshkolBatchAxis));
        memcpy(f, l, sizeof *f + sizeof(EshkolBatchAxis));
        f->columns = rows, f->fault = ESHKOL_LINEAR_FINE;
        f->out[0] = room(batch * rows * rows * size), f->out[1] = room(batch * rows * 4);
        f->out[2] = room(batch * rows * 8);
        eshkol_linear_lu(f, 0, batch);
        l->in[0] = f->out[0], l->in[2] = f->out[2], l->flags = (int64_t)drawn(2), l->fault = ESHKOL_LINEAR_FINE;
        eshkol_linear_factored(l, 0, batch);
        for (int64_t k = 0; k < batch && !wild; k++)
            of_solution(l, k, a);
        free(f->out[0]), free(f->out[1]), free(f->out[2]), free(f);
    }
    for (int k = 0; k < 4; k++)
        free(l->out[k]);
    free(a), free(b), free(l);
}

int main(void)
{
    eshkol_scheduler_free(eshkol_scheduler_new(3)); /* the C library keeps something of threads that have ended */
    const size_t before_all = __sanitizer_get_current_allocated_bytes();
    eshkol_scheduler *pool = eshkol_scheduler_new(3);
    for (int turn = 0; turn < 800; turn++)
        tried(pool);
    eshkol_scheduler_free(pool);
    eshkol_scratch_clear();
    return finished("linear", before_all);
}
