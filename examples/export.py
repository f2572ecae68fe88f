"""A function as a library for C: written here, called by a small C program, compared with what Python gives."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import eshkol as ek
from eshkol.backends.cpu.export import c_compiler

PROGRAM = r"""
#include <stdio.h>
#include "digits.h"

int main(void)
{
    static float image[DIGITS_IMAGE_COUNT], out[DIGITS_OUT_COUNT];
    for (int k = 0; k < DIGITS_IMAGE_COUNT; k++)
        image[k] = (float)(k % 28) / 28;
    digits_model *model = digits_new(0);
    int code = model == NULL ? digits_check() : digits_run(model, image, out);
    if (model == NULL || code != DIGITS_OK) {
        fprintf(stderr, "%s\n", digits_error(code));
        return 1;
    }
    for (int k = 0; k < DIGITS_OUT_COUNT; k++)
        printf("%.9g\n", out[k]);
    digits_free(model);
    return 0;
}
"""


def main() -> int:
    rng = np.random.default_rng(1)
    kernels, bias, last = (
        ek.tensor((0.2 * rng.normal(size=s)).astype(np.float32)) for s in ((8, 1, 5, 5), (8,), (8 * 12 * 12, 10))
    )

    def digits(image: ek.Tensor) -> ek.Tensor:
        hidden = ek.max_pool2d(ek.relu(ek.conv2d(image, kernels, bias)), 2)
        return ek.softmax(hidden.reshape(1, -1) @ last, axis=-1)

    image = ek.tensor(np.tile(np.arange(28, dtype=np.float32) / 28, 28).reshape(1, 1, 28, 28))
    with tempfile.TemporaryDirectory() as folder:
        exported = ek.export_native(digits, (image,), Path(folder) / "libdigits.so")
        print(f"  {exported.library.name}: {exported.library.stat().st_size} bytes, with its weights and threads")
        (Path(folder) / "main.c").write_text(PROGRAM, encoding="utf-8")
        command = [*c_compiler(), "main.c", "libdigits.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]
        print(f"  {shlex.join(command)}")
        subprocess.run(command, cwd=folder, check=True)
        done = subprocess.run([Path(folder) / "main"], capture_output=True, text=True, check=True)
    found = np.array(done.stdout.split(), np.float32)
    wanted = ek.jit(digits)(image).numpy().reshape(-1)
    print("  from C:     ", *(f"{p:.4f}" for p in found))
    print("  from Python:", *(f"{p:.4f}" for p in wanted))
    return int(not np.array_equal(found, wanted))


if __name__ == "__main__":
    sys.exit(main())
