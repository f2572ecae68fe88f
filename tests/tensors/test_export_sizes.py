"""Libraries that take any length of an axis, called by C programs, against what jit gives for each length."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import TensorError

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
rng = np.random.default_rng(5)
LARGEST = 20
SIZES = (3, 1, 2, 7, 8, 8, 12, 16, 17, 20, 5)  # one model meets all of them, one after another
WRONG = (0, -1, 21, 1 << 40, 1 << 62)

DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"

int main(void)
{
    static float x[40 * 20], y[40 * 3], p[40 * 3], loss[1], sums[20];
    static const long long sizes[] = {SIZES}, wrong[] = {WRONG};
    FILE *in = fopen("in.bin", "rb"), *out = fopen("out.bin", "wb");
    net_model *model = net_new(2);
    if (model == NULL || in == NULL || out == NULL)
        return 1;
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = (size_t)sizes[k];
        if (fread(x, 4, n * 20, in) != n * 20 || fread(y, 4, n * 3, in) != n * 3)
            return 2;
        int code = net_run(model, sizes[k], x, y, p, loss, sums);
        if (code != NET_OK) {
            printf("%lld: %s\\n", sizes[k], net_error(code));
            return 3;
        }
        fwrite(p, 4, n * 3, out);
        fwrite(loss, 4, 1, out);
        fwrite(sums, 4, 20, out);
    }
    for (unsigned k = 0; k < sizeof wrong / sizeof *wrong; k++)
        if (net_run(model, wrong[k], x, y, p, loss, sums) != NET_SIZE)
            return 4;
    if (net_run(model, 4, x, y, p, loss, NULL) != NET_NULL || net_run(model, 4, x, y, p, loss, sums) != NET_OK)
        return 5;
    net_free(model);
    fclose(out);
    return 0;
}
"""


@pytest.fixture(autouse=True)
def on_the_cpu(on_the_reference_backend):
    with ek.use_backend("cpu"):
        yield


def network():
    first, second = (ek.tensor((0.4 * rng.normal(size=s)).astype(np.float32)) for s in ((20, 16), (16, 3)))

    def net(x, y):
        p = ek.softmax(ek.relu(x @ first) @ second, axis=-1)
        return p, ((p - y) ** 2).mean() / x.shape[0], (x * 2).sum(0)

    return net


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_a_library_takes_any_size(tmp_path):
    net = network()
    batches = {n: [rng.normal(size=(n, w)).astype(np.float32) for w in (20, 3)] for n in SIZES}
    exported = ek.export_native(
        net, [ek.tensor(a) for a in batches[7]], tmp_path / "libnet.so", dynamic={"x": 0, "y": 0}, largest=LARGEST
    )
    header = exported.header.read_text()
    assert "int64_t n /* the size */" in header
    assert "const float *x /* [n][20] */" in header
    assert "Sizes n that it takes: 1 to 20." in header
    (tmp_path / "in.bin").write_bytes(b"".join(a.tobytes() for n in SIZES for a in batches[n]))
    text = DRIVER
    for word, some in (("SIZES", SIZES), ("WRONG", WRONG)):
        text = text.replace(f"{{{word}}}", f"{{{', '.join(f'{n}LL' for n in some)}}}")
    (tmp_path / "main.c").write_text(text)
    command = [COMPILER, "-Wall", "-Werror", "main.c", "-o", "program", "./libnet.so", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "program"], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
    found = np.frombuffer((tmp_path / "out.bin").read_bytes(), np.float32)
    for n in SIZES:
        for want in map(np.asarray, ek.jit(net, dynamic=False)(*map(ek.tensor, batches[n]))):
            np.testing.assert_allclose(found[: want.size].reshape(want.shape), want, rtol=2e-5, atol=1e-6)
            found = found[want.size :]
    assert not found.size


def test_what_cannot_take_any_size_is_told(tmp_path):
    x = ek.zeros((6, 4))
    cases = [
        (lambda x: x * float(x.shape[0]), {"x": 0}, "cannot be compiled for every length: .* becomes a float"),
        (lambda x: x, {"y": 0}, "dynamic axes have one length in a call"),
        (lambda x: x @ x.T, {"x": (0, 1)}, "here 4 and 6"),
    ]
    for function, dynamic, message in cases:
        with pytest.raises(TensorError, match=message):
            ek.export_native(function, (x,), tmp_path / "libf.so", dynamic=dynamic, largest=8)
