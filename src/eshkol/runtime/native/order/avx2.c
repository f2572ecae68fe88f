/* Sorts for processors with AVX2. */
#if defined(__x86_64__)
#define ROWS eshkol_order_rows_avx2
#define TARGET "avx2"
#define BYTES 32
#include "kinds.h"
#endif
