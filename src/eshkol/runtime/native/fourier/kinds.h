/* passes.h and halves_code.h for floats and doubles, for one kind of processor: KERNELS is their table, TARGET what the
   processor has (as GCC and Clang name it). Included once by each file that chooses these. */
#include "fourier.h"

#include <stddef.h>
#include <string.h>

#define PRAGMA(TEXT) _Pragma(#TEXT)
#if defined(__clang__)
#define CHOOSE(NAMES) PRAGMA(clang attribute push(__attribute__((target(NAMES))), apply_to = function))
#define FREELY PRAGMA(clang loop vectorize(assume_safety))
#else
#pragma GCC push_options
#pragma GCC optimize("O3", "fp-contract=fast")
#define CHOOSE(NAMES) PRAGMA(GCC target(NAMES))
#define FREELY PRAGMA(GCC ivdep)
#endif
#ifdef TARGET
CHOOSE(TARGET)
#endif

#define PASTE(A, B) A##B
#define JOIN(A, B) PASTE(A, B)
#define NAMED(NAME) JOIN(NAME, SUFFIX)

#define R float
#define SUFFIX _f32
#include "passes.h"
#include "halves_code.h"
#undef SUFFIX
#undef R
#define R double
#define SUFFIX _f64
#include "passes.h"
#include "halves_code.h"
#undef SUFFIX
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
