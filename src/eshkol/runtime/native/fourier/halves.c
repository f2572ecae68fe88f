/* See halves.h. */
#include "halves.h"

#include "fourier.h"

static void loop(const EshkolHalves *halves, EshkolHalvesPart part, int64_t begin, int64_t end)
{
    const int64_t length = halves->half / 2 + 1;
    const int64_t pieces = (length + ESHKOL_HALVES_PIECE - 1) / ESHKOL_HALVES_PIECE;
    if (pieces == 1) {
        for (int64_t row = begin; row < end; row++)
            part(halves, row, 0, length);
        return;
    }
    for (int64_t task = begin; task < end; task++) {
        const int64_t from = task % pieces * ESHKOL_HALVES_PIECE;
        part(halves, task / pieces, from, length - from < ESHKOL_HALVES_PIECE ? length : from + ESHKOL_HALVES_PIECE);
    }
}

void eshkol_halves_split(void *context, int64_t begin, int64_t end)
{
    const EshkolHalves *halves = context;
    const EshkolFourierKernels *kernels = eshkol_fourier_kernels();
    loop(halves, halves->wide ? kernels->split_f64 : kernels->split_f32, begin, end);
}

void eshkol_halves_joined(void *context, int64_t begin, int64_t end)
{
    const EshkolHalves *halves = context;
    const EshkolFourierKernels *kernels = eshkol_fourier_kernels();
    loop(halves, halves->wide ? kernels->joined_f64 : kernels->joined_f32, begin, end);
}
