/* Sorts and extremes for processors with AVX-512. */
#if defined(__x86_64__)
#define KIND(name) name##_avx512
#define TARGET "avx512f,popcnt"
#define VECTOR 64
#include "kinds.h"
#endif
