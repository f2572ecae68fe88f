/* passes.h, halves_code.h and signals.h for floats and doubles, for one kind of processor: KERNELS is their table,
   TARGET what the processor has (as GCC and Clang name it), VECTOR the bytes of its registers. Included once by each
   file that chooses these. */
#include "../registers.h"
#include "fourier.h"

#include <stddef.h>
#include <string.h>

#define PRAGMA(TEXT) _Pragma(#TEXT)
#if defined(__clang__)
#define CHOOSE(NAMES) PRAGMA(clang attribute push(__attribute__((target(NAMES))), apply_to = function))
#define FREELY PRAGMA(clang loop vectorize(assume_safety))
#define UNROLL
#else
#pragma GCC push_options
#pragma GCC optimize("O3", "fp-contract=fast")
#define CHOOSE(NAMES) PRAGMA(GCC target(NAMES))
#define FREELY PRAGMA(GCC ivdep)
#define UNROLL PRAGMA(GCC unroll 16)
#endif
#ifdef TARGET
CHOOSE(TARGET)
#endif

#define PASTE(A, B) A##B
#define JOIN(A, B) PASTE(A, B)
#define NAMED(NAME) JOIN(NAME, SUFFIX)
#define LANES ((int64_t)(VECTOR / sizeof(R)))
#define GROUP ((int64_t)(ESHKOL_FOURIER_GROUP / sizeof(R))) /* signals side by side */
#define FEW 2    /* signals that are better transformed one by one than with zeros beside them */
#define ASIDE (64 / (int64_t)sizeof(R)) /* between what would lie whole pages apart */

#define R float
#define BYTES 4
#define SUFFIX _f32
#include "passes.h"
#include "halves_code.h"
#include "signals.h"
#undef AT_BOTH_ENDS
#undef SUFFIX
#undef BYTES
#undef R
#define R double
#define BYTES 8
#define SUFFIX _f64
#include "passes.h"
#include "halves_code.h"
#include "signals.h"
#undef AT_BOTH_ENDS
#undef SUFFIX
#undef BYTES
#undef R

const EshkolFourierKernels KERNELS = {run_f32, run_f64, split_f32, split_f64, joined_f32, joined_f64};

#ifdef TARGET
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
#if !defined(__clang__)
#pragma GCC pop_options
#endif
