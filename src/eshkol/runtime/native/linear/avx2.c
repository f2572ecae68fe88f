/* The kernels of linear.h for processors with AVX2 and fused multiplication. */
#if defined(__x86_64__)
#define KERNELS eshkol_linear_avx2
#define TARGET "avx2,fma"
#define VECTOR 32
#define STRIP 6
#define VECTORS 2
#include "kinds.h"
#endif
