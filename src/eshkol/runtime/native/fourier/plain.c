/* The kernels of fourier.h for any processor. */
#define KERNELS eshkol_fourier_plain
#define VECTOR 16
#include "kinds.h"
