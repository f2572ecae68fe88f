/* Linear algebra on matrices that lie row by row: triangular factors, and what is solved and told with them.
 *
 * Each function has the form of a loop's body (scheduler.h) over the matrices of a batch, with an `EshkolLinear` as its
 * context. Matrices that are large are worked on by several threads at a time: a matrix is halved until its parts are
 * small, and what is done to the rest of it are products of matrices, whose rows are shared among the threads.
 */
#ifndef ESHKOL_LINEAR_H
#define ESHKOL_LINEAR_H

#include <stdint.h>

#include "../scheduler.h"

enum { ESHKOL_FLOAT32, ESHKOL_FLOAT64, ESHKOL_COMPLEX64, ESHKOL_COMPLEX128, ESHKOL_LINEAR_DTYPES };

#define ESHKOL_LINEAR_FINE UINT64_MAX             /* nothing was wrong */
#define ESHKOL_LINEAR_NO_MEMORY (UINT64_MAX - 1)  /* to work in */

enum {
    ESHKOL_TRIANGLE_LOWER = 1,     /* the lower triangle counts, else the upper */
    ESHKOL_TRIANGLE_TRANSPOSE = 2, /* its transpose is meant */
    ESHKOL_TRIANGLE_UNIT = 4,      /* with ones for its diagonal */
    ESHKOL_CHOLESKY_UPPER = 1,
    ESHKOL_FACTORED_TRANSPOSE = 1,
    ESHKOL_SPECTRUM_ALONE = 1, /* values without vectors */
    ESHKOL_SVD_WHOLE = 2,      /* with vectors that have no value */
    ESHKOL_TRIANGLE_ALONE = 1  /* R without Q */
};

/* One extent of a batch, and how many matrices lie between its elements in each of the first operands (0 where it
   broadcasts). */
typedef struct {
    int64_t extent, stride[2];
} EshkolBatchAxis;

/* Words of 8 bytes, as a record of sequence.h. */
typedef struct {
    uint64_t fault;  /* ESHKOL_LINEAR_FINE, or the least number of what was wrong: see each function */
    void *lapack; /* the function of LAPACK that computes it, for what needs one */
    void *threads[2]; /* LAPACK's own: what tells how many it may use, and what sets that; NULL to leave them alone */
    void *out[4];
    const void *in[3];
    eshkol_scheduler *const *pool; /* where the pool is found */
    int64_t dtype;
    int64_t rows, columns; /* of a matrix */
    int64_t flags;
    int64_t sides;  /* right sides of a system of least squares */
    double cutoff;  /* of its singular values, as a part of the greatest */
    int64_t rank; /* axes of the batch */
    EshkolBatchAxis batch[];
} EshkolLinear;

/* What the above is like, by its names, for who makes records elsewhere: words of a record, dtypes, flags; then NULL */
typedef struct {
    const char *name;
    int64_t value;
} EshkolLinearFact;

extern const EshkolLinearFact eshkol_linear_facts[];

/* out[0]: what in[0] (rows × rows) times it gives in[1] (rows × columns). Fault: the number of a singular matrix. */
void eshkol_linear_solve(void *linear, int64_t begin, int64_t end);

/* Likewise with a triangle of in[0]. Fault: number of the matrix × rows + place of a 0 on its diagonal. */
void eshkol_linear_triangle(void *linear, int64_t begin, int64_t end);

/* out[0]: the Cholesky factor of the Hermitian part of in[0]. Fault: the number of a matrix that has none. */
void eshkol_linear_cholesky(void *linear, int64_t begin, int64_t end);

/* out[0]: the determinant of in[0]. */
void eshkol_linear_det(void *linear, int64_t begin, int64_t end);

/* out[0]: the sign of the determinant of in[0], or its phase; out[1]: the logarithm of its modulus. */
void eshkol_linear_slogdet(void *linear, int64_t begin, int64_t end);

/* out[0]: in[0] (rows × columns) as L under the diagonal and U on and over it; out[1]: as int32 for each column, which
   row (from 1 on) was exchanged with that of the diagonal; out[2]: as int64, which row of in[0] stands in each row. */
void eshkol_linear_lu(void *linear, int64_t begin, int64_t end);

/* out[0]: the eigenvalues of the Hermitian part of in[0], rising; out[1]: its eigenvectors as columns; out[2]: as
   int64, which component of each is real and positive. Fault: number of the matrix × 2, and 1 more unless it
   is not finite. */
void eshkol_linear_eigh(void *linear, int64_t begin, int64_t end);

/* out[0], out[1], out[2]: U, singular values and Vᴴ of in[0] (rows × columns); out[3]: which component of each vector
   in U is real and positive; the values alone are out[0]. Faults likewise. */
void eshkol_linear_svd(void *linear, int64_t begin, int64_t end);

/* As eigh, of any square matrix in LAPACK's order; values and vectors are complex. */
void eshkol_linear_eig(void *linear, int64_t begin, int64_t end);

/* out[0] and out[1]: Q (rows × columns, with columns at right angles) and R of in[0], which is not wider than high; R
   alone is out[0]. */
void eshkol_linear_qr(void *linear, int64_t begin, int64_t end);

/* out[0] (columns × sides): the shortest that in[0] (rows × columns) times it is nearest to in[1] (rows × sides), where
   singular values that the cutoff says are 0. Faults as of svd. */
void eshkol_linear_nearest(void *linear, int64_t begin, int64_t end);

/* As solve, of a matrix (or its transpose) whose factors and order are in[0] and in[2], as lu gives them. */
void eshkol_linear_factored(void *linear, int64_t begin, int64_t end);

/* --- what linear.c is made of ---------------------------------------------------------------------------------------
   The functions for one dtype and one kind of processor, over matrices that are numbered within the batch. */

typedef struct {
    eshkol_body solve, triangle, cholesky, det, slogdet, lu, eigh, svd, eig, qr, factored, nearest;
} EshkolLinearKernels;

extern const EshkolLinearKernels eshkol_linear_plain[ESHKOL_LINEAR_DTYPES];
#if defined(__x86_64__)
extern const EshkolLinearKernels eshkol_linear_avx2[ESHKOL_LINEAR_DTYPES];
extern const EshkolLinearKernels eshkol_linear_avx512[ESHKOL_LINEAR_DTYPES];
#endif

/* Takes down what was found wrong, unless it was something before it. */
static inline void eshkol_linear_fault(EshkolLinear *linear, uint64_t what)
{
    uint64_t seen = __atomic_load_n(&linear->fault, __ATOMIC_RELAXED);
    while (what < seen
           && !__atomic_compare_exchange_n(&linear->fault, &seen, what, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* From the first of these calls until the last of as many with 0, LAPACK computes on the calling thread alone, where
   the record has what says so: for matrices that are not large its threads wait for each other longer than they
   work. */
void eshkol_linear_alone(const EshkolLinear *linear, int alone);

/* Which matrix of an operand belongs to a number within the batch. */
static inline int64_t eshkol_linear_place(const EshkolLinear *linear, int operand, int64_t number)
{
    int64_t place = 0;
    for (int64_t k = linear->rank - 1; k > 0; k--) {
        const EshkolBatchAxis *axis = &linear->batch[k];
        place += number % axis->extent * axis->stride[operand];
        number /= axis->extent;
    }
    if (linear->rank > 0) /* the last is within its extent, and division takes longer than small matrices do */
        place += number * linear->batch[0].stride[operand];
    return place;
}

#endif
