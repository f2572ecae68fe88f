/* The kernels of linear.h for any processor. */
#define KERNELS eshkol_linear_plain
#define VECTOR 16
#define STRIP 4
#define VECTORS 2
#include "kinds.h"
