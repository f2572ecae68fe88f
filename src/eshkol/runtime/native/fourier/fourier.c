/* See fourier.h. */
#include "fourier.h"

#include <stdlib.h>

#define NEAR 16384 /* bytes of work that stand on the stack */

const EshkolFourierKernels *eshkol_fourier_kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return &eshkol_fourier_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &eshkol_fourier_avx2;
#endif
    return &eshkol_fourier_plain;
}

void eshkol_fourier(void *context, int64_t begin, int64_t end)
{
    EshkolFourier *fourier = context;
    const EshkolFourierKernels *kernels = eshkol_fourier_kernels();
    const EshkolFourierRun run = fourier->wide ? kernels->run_f64 : kernels->run_f32;
    const uint64_t size = 4 * (uint64_t)fourier->length * (fourier->wide ? sizeof(double) : sizeof(float));
    if (size <= NEAR) {
        _Alignas(64) char work[NEAR];
        run(fourier, begin, end, work);
        return;
    }
    void *work = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!work) {
        __atomic_store_n(&fourier->fault, ESHKOL_FOURIER_NO_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    run(fourier, begin, end, work);
    free(work);
}
