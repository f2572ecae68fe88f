/* The kernels of fourier.h for any processor. */
#define KERNELS eshkol_fourier_plain
#include "kinds.h"
