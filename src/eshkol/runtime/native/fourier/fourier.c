/* See fourier.h. */
#include "fourier.h"

#include "../scratch.h"

#define NEAR 32768 /* bytes of work that stand on the stack */
#define PAGE 4096
#define APART 384

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
    const int64_t bytes = fourier->wide ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    const int64_t longest = fourier->length > fourier->n ? fourier->length : fourier->n + 1;
    int64_t pitch = longest * (fourier->together ? ESHKOL_FOURIER_GROUP : bytes);
    pitch += fourier->together ? 64 * fourier->radices[0] : 0; /* what the first pass makes stands a little apart */
    pitch = (pitch + 63) / 64 * 64;
    if (pitch % PAGE < APART || pitch % PAGE > PAGE - APART)
        pitch += 2 * APART; /* what lies whole pages apart waits for each other, as if it were the same */
    _Alignas(64) char near[NEAR];
    void *work = 4 * pitch <= NEAR ? near : eshkol_scratch_take(4 * (size_t)pitch);
    if (!work) {
        __atomic_store_n(&fourier->fault, ESHKOL_FOURIER_NO_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    if (fourier->wide)
        kernels->run_f64(fourier, begin, end, work, pitch / bytes);
    else
        kernels->run_f32(fourier, begin, end, work, pitch / bytes);
    if (work != near)
        eshkol_scratch_give(work);
}
