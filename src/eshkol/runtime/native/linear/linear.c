/* See linear.h. Which kernels are called depends on the processor that there is. */
#include "linear.h"

#include <pthread.h>
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

void eshkol_linear_alone(const EshkolLinear *linear, int alone)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    static int callers, before; /* several may want it at a time: the first asks how many threads there were */
    if (linear->threads[0] == NULL || linear->threads[1] == NULL)
        return;
    pthread_mutex_lock(&turn);
    if (alone && callers++ == 0) {
        before = ((int (*)(void))linear->threads[0])();
        ((void (*)(int))linear->threads[1])(1);
    } else if (!alone && --callers == 0)
        ((void (*)(int))linear->threads[1])(before);
    pthread_mutex_unlock(&turn);
}

#define WORD(FIELD) {#FIELD, offsetof(EshkolLinear, FIELD) / 8}
#define FACT(NAME, VALUE) {NAME, VALUE}

const EshkolLinearFact eshkol_linear_facts[] = {
    WORD(out), WORD(in), WORD(lapack), WORD(threads), WORD(pool), WORD(dtype), WORD(rows), WORD(columns), WORD(flags),
    WORD(sides), WORD(cutoff), WORD(rank), WORD(batch), FACT("float32", ESHKOL_FLOAT32),
    FACT("float64", ESHKOL_FLOAT64),
    FACT("complex64", ESHKOL_COMPLEX64), FACT("complex128", ESHKOL_COMPLEX128),
    FACT("lower", ESHKOL_TRIANGLE_LOWER), FACT("transpose", ESHKOL_TRIANGLE_TRANSPOSE),
    FACT("unit", ESHKOL_TRIANGLE_UNIT), FACT("upper", ESHKOL_CHOLESKY_UPPER),
    FACT("turned", ESHKOL_FACTORED_TRANSPOSE), FACT("alone", ESHKOL_SPECTRUM_ALONE), FACT("whole", ESHKOL_SVD_WHOLE),
    FACT("triangle alone", ESHKOL_TRIANGLE_ALONE),
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
ENTRY(nearest)
