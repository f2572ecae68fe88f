/* See order.h. */
#include "order.h"

void eshkol_order_rows(void *order, int64_t begin, int64_t end)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        eshkol_order_rows_avx512(order, begin, end);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        eshkol_order_rows_avx2(order, begin, end);
        return;
    }
#endif
    eshkol_order_rows_plain(order, begin, end);
}
