/* The kernels of linear.h for processors with AVX-512. */
#if defined(__x86_64__)
#define KERNELS eshkol_linear_avx512
#define TARGET "avx512f,avx2,fma"
#define VECTOR 64
#define STRIP 8
#define VECTORS 3
#include "kinds.h"
#endif
