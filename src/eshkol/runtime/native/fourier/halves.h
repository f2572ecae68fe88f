/* Fourier transforms of real numbers by transforms of half the length: what is done after such a one, or before it.
 *
 * n real numbers are taken as n/2 complex ones, as they lie in memory. E and O being the transforms of the even and of
 * the odd ones, that of all has E[k] + w^k · O[k], and that of the pairs E[k] + i · O[k]. Each function has the form of
 * a loop's body (scheduler.h), over pieces of rows; its context is an `EshkolHalves`.
 */
#ifndef ESHKOL_HALVES_H
#define ESHKOL_HALVES_H

#include <stdint.h>

#define ESHKOL_HALVES_PIECE 2048 /* elements from either end of a row that are one task */

/* Words of 8 bytes, as a record of sequence.h. */
typedef struct {
    uint64_t fault, unused;
    void *out;
    const void *in;
    const void *turns; /* e^(-2πi k/n) for k = 0 … n/2 */
    int64_t wide;      /* whether parts are doubles, else floats */
    int64_t half;      /* n/2 */
    int64_t given;     /* of what is joined, how many elements a row has: the others are 0 */
    int64_t inverse;   /* whether w is e^(2πi/n) */
    int64_t twice;     /* of what is joined, whether all elements but 0 and n/2 count twice */
    double factor;
} EshkolHalves;

/* in: rows of n/2 transforms of pairs; out: rows of the first n/2 + 1 elements of the transforms of n real numbers,
   times the factor. */
void eshkol_halves_split(void *halves, int64_t begin, int64_t end);

/* in: rows of up to n/2 + 1 elements; out: rows of n/2, whose transforms are pairs of real numbers: the real parts of
   the transforms of the rows as they would be with zeros behind, times the factor. */
void eshkol_halves_joined(void *halves, int64_t begin, int64_t end);

/* The same of one row's elements from … to - 1 and those as far from its end, for one kind of processor. */
typedef void (*EshkolHalvesPart)(const EshkolHalves *halves, int64_t row, int64_t from, int64_t to);

#endif
