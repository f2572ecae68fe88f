/* See linear.h. Which kernels are called depends on the processor that there is. */
#include "linear.h"

#include <stddef.h>

static const EshkolLinearKernels *kernels(const EshkolLinear *linear)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return &eshkol_linear_avx512[linear->dtype];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &eshkol_linear_avx2[linear->dtype];
#endif
    return &eshkol_linear_plain[linear->dtype];
}

#define ENTRY(NAME)                                                       \
    void eshkol_linear_##NAME(void *linear, int64_t begin, int64_t end)   \
    {                                                                     \
        kernels(linear)->NAME(linear, begin, end);                        \
    }

ENTRY(solve)
ENTRY(triangle)
ENTRY(cholesky)
ENTRY(det)
ENTRY(slogdet)
ENTRY(lu)
