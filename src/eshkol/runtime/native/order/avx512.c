/* Sorts for processors with AVX-512. */
#if defined(__x86_64__)
#define ROWS eshkol_order_rows_avx512
#define TARGET "avx512f"
#define BYTES 64
#include "kinds.h"
#endif
