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

/* How many tasks the signals of a record are. */
static int64_t tasks_of(const EshkolFourier *f)
{
    const int64_t group = f->together ? ESHKOL_FOURIER_GROUP / (f->wide ? 8 : 4) : 1;
    return f->inner == 1 ? (f->signals + group - 1) / group : f->signals / f->inner * ((f->inner + group - 1) / group);
}

void eshkol_fourier_planes(void *context, int64_t begin, int64_t end)
{
    EshkolPlanes *planes = context;
    const int64_t number = planes->rows.wide ? 2 * sizeof(double) : 2 * sizeof(float); /* bytes */
    const int64_t given = planes->rows.n + (planes->rows.kind == ESHKOL_FOURIER_SPLIT);
    for (int64_t plane = begin; plane < end; plane++) {
        EshkolFourier rows = planes->rows, columns = planes->columns;
        rows.in = (const char *)rows.in + plane * rows.signals * rows.given * number;
        rows.out = (char *)rows.out + plane * rows.signals * given * number;
        columns.in = columns.out = rows.out;
        eshkol_fourier(&rows, 0, tasks_of(&rows));
        eshkol_fourier(&columns, 0, tasks_of(&columns));
        const uint64_t fault = rows.fault < columns.fault ? rows.fault : columns.fault;
        if (fault < __atomic_load_n(&planes->rows.fault, __ATOMIC_RELAXED))
            __atomic_store_n(&planes->rows.fault, fault, __ATOMIC_RELAXED);
    }
}
