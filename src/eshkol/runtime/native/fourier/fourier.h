/* Fourier transforms of signals one by one, of any length, with tables that were made beforehand.
 *
 * A length of small factors goes by Stockham's passes, one for each factor, to and fro between two arrays with real and
 * imaginary parts apart: in a pass of radix r over m = length / (s·r) columns, x[q + s·(p + m·j)] becomes
 * y[q + s·(r·p + k)], transformed over j and turned by e^(-2πi·p·k/(m·r)). Every loop runs over numbers that lie side
 * by side: over q, or over p where s is 1. Any other length goes by Bluestein: times a chirp, convolved with its
 * conjugate by transforms of a length that has small factors, times the chirp again.
 *
 * Signals side by side are transformed at once where there are enough of them: with s = their number for the first
 * pass, every loop runs over whole registers. They are columns, as they lie in memory, or rows, which are turned over.
 *
 * `eshkol_fourier` has the form of a loop's body (scheduler.h), over signals or groups of them; its context is an
 * `EshkolFourier`.
 */
#ifndef ESHKOL_FOURIER_H
#define ESHKOL_FOURIER_H

#include "halves.h"

#define ESHKOL_FOURIER_PASSES 20
#define ESHKOL_FOURIER_GREATEST 61 /* radix; those without code of their own are odd */
#define ESHKOL_FOURIER_NO_MEMORY (UINT64_MAX - 1)
#define ESHKOL_FOURIER_GROUP 64 /* bytes of the real parts of signals that are transformed side by side */

/* What is transformed. Real numbers are taken in pairs, as complex ones (halves.h). */
enum {
    ESHKOL_FOURIER_PLAIN,
    ESHKOL_FOURIER_SPLIT,       /* pairs of 2·n real numbers; given are the first n + 1 numbers of their transforms */
    ESHKOL_FOURIER_JOINED,      /* numbers with zeros behind, 2·n in all; given are real parts of their transforms */
    ESHKOL_FOURIER_JOINED_TWICE /* the same, and all numbers but 0 and n count twice */
};

/* Words of 8 bytes, as a record of sequence.h.
 *
 * The table has for each pass, where its radix r = 2·h + 1 is greater than 8, cos(2π·j·k/r) for j, k = 1 … h, then the
 * sines; then for each k = 1 … r - 1 the m real and the m imaginary parts of e^(-2πi·p·k/(m·r)), p = 0 … m - 1. Where
 * length is not n, the chirp e^(-πi·j²/n), j = 0 … n - 1, follows, and the transform of its conjugate over both ends of
 * an array of that length, divided by the length; real parts first in each. */
typedef struct {
    uint64_t fault, unused;
    void *out;
    const void *in;
    const void *table;
    const void *turns; /* of what is split or joined, e^(-2πi k/2n) for k = 0 … n, as pairs */
    int64_t wide;      /* whether parts are doubles, else floats */
    int64_t kind;      /* ESHKOL_FOURIER_PLAIN … */
    int64_t n;         /* numbers of a signal */
    int64_t length;    /* of the transforms that are made: n, or for Bluestein's way at least 2·n - 1 */
    int64_t given;     /* numbers of a signal that are read: n, or of what is joined up to n + 1 */
    int64_t inner;     /* how far the numbers of a signal are apart; 1 of what is split or joined */
    int64_t signals;
    int64_t together; /* whether tasks are groups of signals, else signals; not for Bluestein's way */
    int64_t inverse;  /* whether it is e^(2πi/n) that is raised to powers */
    double factor;    /* of the result */
    int64_t passes;
    int64_t radices[ESHKOL_FOURIER_PASSES];
} EshkolFourier;

void eshkol_fourier(void *fourier, int64_t begin, int64_t end);

/* Both axes of matrices that lie one after another, each of which stays in the second cache meanwhile: rows as the
   first record says, of one matrix, then columns of what they give, in place. A loop's body over matrices; the
   addresses are the first record's, and so is the fault. */
typedef struct {
    EshkolFourier rows, columns;
} EshkolPlanes;

void eshkol_fourier_planes(void *planes, int64_t begin, int64_t end);

/* The same for one kind of processor, given four arrays that lie `pitch` numbers apart; and what is around real
   transforms. */
typedef struct {
    void (*run_f32)(const EshkolFourier *fourier, int64_t begin, int64_t end, float *work, int64_t pitch);
    void (*run_f64)(const EshkolFourier *fourier, int64_t begin, int64_t end, double *work, int64_t pitch);
    EshkolHalvesPart split_f32, split_f64, joined_f32, joined_f64;
} EshkolFourierKernels;
const EshkolFourierKernels *eshkol_fourier_kernels(void); /* those for this processor */
extern const EshkolFourierKernels eshkol_fourier_plain;
#if defined(__x86_64__)
extern const EshkolFourierKernels eshkol_fourier_avx2;
extern const EshkolFourierKernels eshkol_fourier_avx512;
#endif

#endif
