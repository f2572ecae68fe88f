/* The kernels of linear.h for any processor. */
#define KERNELS eshkol_linear_plain
#define VECTOR 16
#if defined(__aarch64__) /* which multiplies with one lane of a register, and has many of them */
#define BY_LANES 1
#define STRIP 8
#else
#define STRIP 4
#endif
#define VECTORS 2
#include "kinds.h"
