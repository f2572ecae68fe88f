/* Sorts and extremes for processors with AVX2. */
#if defined(__x86_64__)
#define KIND(name) name##_avx2
#define TARGET "avx2"
#define VECTOR 32
#include "kinds.h"
#endif
