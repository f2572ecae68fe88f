/* products.h, lanes.h, triangles.h, panels.h, factors.h, roots.h, batches.h, jacobi.h, spectra.h, qr.h and nearest.h,
   for each dtype and for one kind of processor: KERNELS is their table, TARGET what the processor has (as GCC and Clang
   name it), VECTOR the bytes of its registers. A product is made of tiles of STRIP rows and VECTORS registers, by lanes
   of a register where BY_LANES is set. Included once by each file that chooses these. */
#include "../registers.h"
#include "../scratch.h"
#include "linear.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRAGMA(TEXT) _Pragma(#TEXT)
#if defined(__clang__)
#define CHOOSE(NAMES) PRAGMA(clang attribute push(__attribute__((target(NAMES))), apply_to = function))
#define UNROLL
#else
#pragma GCC push_options
#ifdef __OPTIMIZE__ /* not for who looks for faults */
#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno")
#endif
#define CHOOSE(NAMES) PRAGMA(GCC target(NAMES))
#define UNROLL PRAGMA(GCC unroll 16)
#endif
#ifdef TARGET
CHOOSE(TARGET)
#endif

#define LEAF 8    /* columns of what is not halved any more */
#define SMALL 24  /* rows of a matrix that is not halved at all */
#define SIDE_BY_SIDE 8 /* rows that are solved at a time */
#define DEPTH 256 /* of a product that is made at a time */
#define BREADTH 256 /* and of its columns: what lies packed stays in the second cache */
#define WORTH (1 << 18)  /* multiplications of a product that several threads are worth */
#define STRIPS_AT_A_TIME 2 /* of a product's rows for one turn of a loop */
#define FEW_ROWS 32 /* of a product for which the other matrix is not packed */
#define PANEL_COLUMNS 32 /* of a matrix that are eliminated as their transpose */
#define SOME_ROWS 64 /* among which the greatest number is looked for at a time */
#define BLOCK 64  /* rows of a triangle that is not halved, */
#define WHOLE 384 /* or so many, where it solves for many columns: it stays in the second cache */

#define ROOTED 384 /* rows of a symmetric matrix that is one panel */
#define BATCHED 16 /* rows and columns of matrices that are factored side by side */
#define JACOBI 10  /* rows and columns of matrices that are worked on side by side; or, where registers hold many */
#define JACOBI_MOST (LANES >= 8 ? 16 : JACOBI) /* and there are enough to fill them, so many: LAPACK waits for itself */
#define PANEL 16   /* columns that are reflected at a time */
#define SWEEPS 40  /* after which rotations have never been wanted */
#define ROOT(X) _Generic((X), float: sqrtf, double: sqrt)(X)
#define ABSOLUTE(X) _Generic((X), float: fabsf, double: fabs)(X)
#define PASTE(A, B) A##B
#define JOIN(A, B) PASTE(A, B)
#define NAMED(NAME) JOIN(NAME, SUFFIX)
#define T NAMED(Number)
#define LANES ((int64_t)(VECTOR / sizeof(R)))
#define WIDTH (LANES * VECTORS) /* columns of a tile */

/* --- the numbers -------------------------------------------------------------------------------------------------- */

#define R float
#define BYTES 4
#define PARTS 1
#define SUFFIX _f32
#include "products.h"
#include "lanes.h"
#include "triangles.h"
#include "panels.h"
#include "factors.h"
#include "roots.h"
#include "batches.h"
#include "jacobi.h"
#include "spectra.h"
#include "qr.h"
#include "nearest.h"
#undef SUFFIX
#undef PARTS
#define PARTS 2
#define SUFFIX _c64
#include "products.h"
#include "lanes.h"
#include "triangles.h"
#include "panels.h"
#include "factors.h"
#include "roots.h"
#include "batches.h"
#include "jacobi.h"
#include "spectra.h"
#include "qr.h"
#include "nearest.h"
#undef SUFFIX
#undef PARTS
#undef R
#undef BYTES

#define R double
#define BYTES 8
#define PARTS 1
#define SUFFIX _f64
#include "products.h"
#include "lanes.h"
#include "triangles.h"
#include "panels.h"
#include "factors.h"
#include "roots.h"
#include "batches.h"
#include "jacobi.h"
#include "spectra.h"
#include "qr.h"
#include "nearest.h"
#undef SUFFIX
#undef PARTS
#define PARTS 2
#define SUFFIX _c128
#include "products.h"
#include "lanes.h"
#include "triangles.h"
#include "panels.h"
#include "factors.h"
#include "roots.h"
#include "batches.h"
#include "jacobi.h"
#include "spectra.h"
#include "qr.h"
#include "nearest.h"
#undef SUFFIX
#undef PARTS
#undef R
#undef BYTES

#define TABLE(NAME) {batch_solve##NAME, triangle##NAME, cholesky##NAME, batch_det##NAME, batch_slogdet##NAME, \
                     lu##NAME, eigh##NAME, svd##NAME, eig##NAME, qr##NAME, factored##NAME, nearest##NAME}

const EshkolLinearKernels KERNELS[ESHKOL_LINEAR_DTYPES] = {
    [ESHKOL_FLOAT32] = TABLE(_f32),
    [ESHKOL_FLOAT64] = TABLE(_f64),
    [ESHKOL_COMPLEX64] = TABLE(_c64),
    [ESHKOL_COMPLEX128] = TABLE(_c128),
};

#if !defined(__clang__)
#pragma GCC pop_options
#elif defined(TARGET)
#pragma clang attribute pop
#endif
