/* The kernels of fourier.h for processors with AVX2 and fused multiplication. */
#if defined(__x86_64__)
#define KERNELS eshkol_fourier_avx2
#define TARGET "avx2,fma"
#define VECTOR 32
#include "kinds.h"
#endif
