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

#define WORD(FIELD) {#FIELD, offsetof(EshkolLinear, FIELD) / 8}
#define FACT(NAME, VALUE) {NAME, VALUE}

const EshkolLinearFact eshkol_linear_facts[] = {
    WORD(out), WORD(in), WORD(lapack), WORD(pool), WORD(dtype), WORD(rows), WORD(columns), WORD(flags), WORD(rank),
    WORD(batch), FACT("float32", ESHKOL_FLOAT32), FACT("float64", ESHKOL_FLOAT64),
    FACT("complex64", ESHKOL_COMPLEX64), FACT("complex128", ESHKOL_COMPLEX128),
    FACT("lower", ESHKOL_TRIANGLE_LOWER), FACT("transpose", ESHKOL_TRIANGLE_TRANSPOSE),
    FACT("unit", ESHKOL_TRIANGLE_UNIT), FACT("upper", ESHKOL_CHOLESKY_UPPER),
    FACT("turned", ESHKOL_FACTORED_TRANSPOSE), FACT("alone", ESHKOL_SPECTRUM_ALONE), FACT("whole", ESHKOL_SVD_WHOLE),
    {NULL, 0},
};

ENTRY(solve)
ENTRY(triangle)
ENTRY(cholesky)
ENTRY(det)
ENTRY(slogdet)
ENTRY(lu)
ENTRY(eigh)
ENTRY(svd)
ENTRY(eig)
ENTRY(qr)
ENTRY(factored)
