/* The kernels of fourier.h for processors with AVX-512. */
#if defined(__x86_64__)
#define KERNELS eshkol_fourier_avx512
#define TARGET "avx512f,fma"
#define VECTOR 64
#include "kinds.h"
#endif
