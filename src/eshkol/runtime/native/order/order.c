/* The kind of processor, chosen when it runs. */
#include "order.h"
#include "search.h"

#if defined(__x86_64__)
#define CHOSEN_OF(name)                          \
    (__builtin_cpu_supports("avx512f") ? name##_avx512 \
     : __builtin_cpu_supports("avx2")  ? name##_avx2   \
                                       : name##_plain)
#else
#define CHOSEN_OF(name) name##_plain
#endif

void eshkol_order_rows(void *order, int64_t begin, int64_t end)
{
    CHOSEN_OF(eshkol_order_rows)(order, begin, end);
}

void eshkol_order_extreme(void *extreme, int64_t begin, int64_t end)
{
    CHOSEN_OF(eshkol_order_extreme)(extreme, begin, end);
}
