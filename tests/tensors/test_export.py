"""Libraries that `export_native` writes, called by C programs that know nothing of Python, against jit's results."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.backends.cpu import export, simd
from eshkol.backends.cpu.needs import HWCAP, Need, needs
from eshkol.errors import BackendError, BackendUnavailable, TensorError, TraceError
from eshkol.llvm.builtins import DIVISION_FUNCTION
from eshkol.llvm.elf import renamed
from eshkol.llvm.objects import compile_object
from eshkol.schedule.plan.steps import Together

ROOT = Path(__file__).parents[2]
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def on_the_cpu(on_the_reference_backend):
    with ek.use_backend("cpu"):
        yield


def weights(*shape: int) -> ek.Tensor:
    return ek.tensor((0.4 * rng.normal(size=shape)).astype(np.float32))


# Reads inputs from a file, runs a model in each of some threads several times, and writes what all of them agree on.
DRIVER = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{name}.h"

static char *in[{slots}];

static void *work(void *made)
{{
    char **out = made;
    {name}_model *model = {name}_new({pool});
    if (model == NULL)
        exit(3);
    for (int k = 0; k < {runs}; k++) {{
        int code = {name}_run(model{arguments});
        if (code != 0) {{
            printf("%d %s\\n", code, {name}_error(code));
            exit(0);
        }}
    }}
    {name}_free(model);
    return NULL;
}}

int main(void)
{{
    static const size_t insizes[] = {{{insizes}0}}, outsizes[] = {{{outsizes}0}};
    FILE *file = fopen("in.bin", "rb");
    for (int k = 0; k < {ins}; k++) {{
        in[k] = malloc(insizes[k] + 1);
        if (fread(in[k], 1, insizes[k], file) != insizes[k])
            return 2;
    }}
    fclose(file);
    char *out[{threads}][{outs} + 1];
    pthread_t threads[{threads}];
    for (int t = 0; t < {threads}; t++) {{
        for (int k = 0; k < {outs}; k++)
            out[t][k] = malloc(outsizes[k] + 1);
        pthread_create(&threads[t], NULL, work, out[t]);
    }}
    for (int t = 0; t < {threads}; t++)
        pthread_join(threads[t], NULL);
    file = fopen("out.bin", "wb");
    for (int k = 0; k < {outs}; k++) {{
        for (int t = 1; t < {threads}; t++)
            if (memcmp(out[0][k], out[t][k], outsizes[k]) != 0)
                return 4;
        fwrite(out[0][k], 1, outsizes[k], file);
    }}
    fclose(file);
    for (int k = 0; k < {ins}; k++)
        free(in[k]);
    for (int t = 0; t < {threads}; t++)
        for (int k = 0; k < {outs}; k++)
            free(out[t][k]);
    puts("0 done");
    return 0;
}}
"""


def built(text: str, exported: ek.tensors.export.Exported, *flags: str, language: str = "c") -> Path:
    """A program linked with a library, which it finds in its own folder."""
    folder = exported.library.parent
    (folder / f"main.{language}").write_text(text, encoding="utf-8")
    compiler = COMPILER if language == "c" else shutil.which("c++")
    command = [
        compiler, *flags, "-Wall", "-Werror", "-pthread", f"main.{language}", "-o", "program",
        f"./{exported.library.name}", "-Wl,-rpath,$ORIGIN",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "program"


def ran(program: Path) -> tuple[int, str]:
    """The code and message that a program prints; it sees no Python."""
    done = subprocess.run([program], cwd=program.parent, env={}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    code, message = done.stdout.split(" ", 1)
    return int(code), message.strip()


def in_c(exported, inputs, outputs, *, threads=1, pool=2, runs=2, flags=()) -> tuple[int, str]:
    """Run a library from C; the outputs are filled in."""
    folder = exported.library.parent
    (folder / "in.bin").write_bytes(b"".join(x.tobytes() for x in inputs))
    arguments = [*(f"(void *)in[{k}]" for k in range(len(inputs))), *(f"(void *)out[{k}]" for k in range(len(outputs)))]
    text = DRIVER.format(
        name=exported.name, slots=len(inputs) + 1, pool=pool, runs=runs, threads=threads, ins=len(inputs),
        outs=len(outputs), arguments="".join(f", {a}" for a in arguments),
        insizes="".join(f"{x.nbytes}, " for x in inputs), outsizes="".join(f"{x.nbytes}, " for x in outputs),
    )  # fmt: skip
    code, message = ran(built(text, exported, *flags))
    if code == 0:
        data = (folder / "out.bin").read_bytes()
        for x in outputs:
            x.reshape(-1).view(np.uint8)[:] = np.frombuffer(data[: x.nbytes], np.uint8)
            data = data[x.nbytes :]
    return code, message


def check(function, args, folder, *, level=None, **how) -> ek.tensors.export.Exported:
    """A function's library gives what jit gives, bit by bit."""
    exported = ek.export_native(function, args, folder / "libmodel.so", level=level)
    inputs = [np.ascontiguousarray(x) for x in map(np.asarray, ek.tree_leaves(args))]
    with ek.no_grad():
        wanted = [x.numpy() for x in ek.tree_leaves(ek.jit(function)(*args))]
    outputs = [np.zeros_like(x) for x in wanted]
    assert in_c(exported, inputs, outputs, **how) == (0, "done")
    for got, want in zip(outputs, wanted, strict=True):
        if level is None:
            assert got.tobytes() == want.tobytes()
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return exported


# --- models -----------------------------------------------------------------------------------------


def perceptron():
    w = {"first": weights(20, 16), "bias": weights(16), "second": weights(16, 10)}
    w["first"].requires_grad_()

    def digits(x):
        return ek.softmax(ek.relu(x @ w["first"] + w["bias"]) @ w["second"], axis=-1)

    return digits, (weights(6, 20),)


def convolutions():
    first, bias, second, last = weights(4, 1, 3, 3), weights(4), weights(4, 4, 3, 3), weights(36, 3)

    def net(image):
        hidden = ek.max_pool2d(ek.relu(ek.conv2d(image, first, bias, padding=1)), 2)
        hidden = ek.relu(ek.conv2d(hidden, second))
        return ek.softmax(hidden.reshape(hidden.shape[0], -1) @ last, axis=-1), hidden.mean()

    return net, (weights(2, 1, 10, 10),)


def attention():
    table, inward, outward = weights(30, 16), weights(16, 48), weights(16, 16)

    def block(tokens):
        x = ek.take(table, tokens, 0)
        q, k, v = (t.reshape(-1, 5, 2, 8).permute(0, 2, 1, 3) for t in ek.split(x @ inward, 16, -1))
        mixed = ek.softmax(q @ k.permute(0, 1, 3, 2) / 8**0.5, axis=-1) @ v
        return x + mixed.permute(0, 2, 1, 3).reshape(-1, 5, 16) @ outward

    return block, (ek.tensor(rng.integers(0, 30, (3, 5))),)


def recurrence():
    turn = weights(8, 8)

    def rnn(state, steps):
        def step(h, x):
            h = ek.tanh(h @ turn + x)
            return h, h.sum()

        last, sums = ek.scan(step, state, steps)
        doubled, count = ek.while_loop(
            lambda s: (s[0] * s[0]).sum() < 100, lambda s: (s[0] * 2, s[1] + 1), (last, ek.tensor(0))
        )
        return {"last": last, "sums": sums, "doubled": doubled, "count": count}

    return rnn, (weights(2, 8), weights(7, 2, 8))


def integers():
    table = ek.tensor(np.arange(12, dtype=np.int16))

    def mixed(a, b, flag, half, nothing):
        chosen = ek.cond(flag[0], lambda a: a * 3, lambda a: a - 1, a)
        total = a + b
        return (total, a // b, ~flag, a, total, table, chosen, half * 2, nothing + 1)

    int32 = [ek.tensor(rng.integers(1, 90, 6).astype(np.int32)) for _ in range(2)]
    return mixed, (*int32, ek.tensor([True, False]), weights(3).cast(ek.float16), ek.zeros((0, 2)))


@needs_compiler
@pytest.mark.parametrize("model", [perceptron, convolutions, attention, recurrence, integers])
def test_c_gets_what_jit_gives(model, tmp_path):
    function, args = model()
    check(function, args, tmp_path)


@needs_compiler
def test_it_stands_alone_and_runs_in_several_threads(tmp_path):
    """Large enough that its loops are split; a model in each of two threads, then what the library needs and shows."""
    w = weights(96, 64)
    exported = check(lambda x: ek.exp(x @ w) + ek.sin(x).sum(), (weights(700, 96),), tmp_path, threads=2, runs=5)
    if shutil.which("readelf") and shutil.which("nm"):
        dynamic = subprocess.run(["readelf", "-d", exported.library], capture_output=True, text=True).stdout
        assert set(re.findall(r"NEEDED.*\[(\w+)", dynamic)) <= {
            "libc",
            "libm",
            "libpthread",
            "ld",
        }  # ld: the loader, for thread-local state
        shown = subprocess.run(["nm", "-D", "--defined-only", exported.library], capture_output=True, text=True).stdout
        assert {line.split()[-1] for line in shown.splitlines()} == {
            f"model_{what}" for what in ("new", "run", "free", "error", "check")
        }
    assert sorted(p.suffix for p in tmp_path.iterdir() if p.name.startswith(("lib", "model", "."))) == [".h", ".so"]


@needs_compiler
def test_small_updates_are_one_loop_and_name_what_fails(tmp_path):
    def update(tables, places):
        return [ek.tanh(t) * 0.9 + 0.1 for t in tables], ek.take(tables[1], places)

    tables = [weights(4000 + 100 * k) for k in range(8)]
    inside = ek.tensor(np.array([4, 4099]))
    assert any(isinstance(s, Together) for s in ek.jit(update).plan(tables, inside).steps)
    exported = check(update, (tables, inside), tmp_path, threads=2, runs=5)
    inputs = [np.array(t) for t in tables]
    outputs = [*map(np.zeros_like, inputs), np.zeros(2, np.float32)]
    code, message = in_c(exported, [*inputs, np.array([4, 4100])], outputs)
    assert code >= 16
    assert "take" in message


@needs_compiler
def test_a_plain_machine_of_a_level(tmp_path):
    w = weights(8)
    exported = check(lambda x: ek.tanh(x) + w, (weights(4, 8),), tmp_path, level=simd.levels()[-1].value)
    required = [n.name for n in needs(simd.plain_target(simd.levels()[-1]))]
    assert (", ".join(required) or "no extension") in exported.header.read_text("utf-8")


@needs_compiler
def test_jit_and_numpy_arguments_and_names(tmp_path):
    @ek.jit
    def scaled(int, batch, factor):
        return batch["X"] * int + batch["x"][0] * factor, int

    args = (np.float32(3), {"X": np.ones(3, np.float32), "x": [np.arange(3, dtype=np.float32)]}, 2.0)
    exported = ek.export_native(scaled, args, str(tmp_path / "odd_name.so"))
    page = exported.header.read_text("utf-8")
    assert (exported.header.name, exported.name) == ("odd_name.h", "odd_name")
    names = ["const float *int_2 /* one element */", "const float *batch_X /* [3] */", "const float *batch_x0 /* [3]",
             "float *out0 /* [3] */", "float *out1 /* one element */"]  # fmt: skip
    assert all(n in page for n in names)
    assert "#define ODD_NAME_BATCH_X_SHAPE {3}" in page
    outputs = [np.zeros(3, np.float32), np.zeros((), np.float32)]
    inputs = [np.float32(3).reshape(()), np.ones(3, np.float32), np.arange(3, dtype=np.float32)]
    assert in_c(exported, inputs, outputs)[0] == 0
    np.testing.assert_array_equal(outputs[0], [3, 5, 7])
    assert outputs[1] == 3


@needs_compiler
@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_as_it_is(tmp_path, compiled):
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 3), nn.BatchNorm1d(3))
    model.eval()
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)
    wanted = model(ek.tensor(x)).detach().numpy()
    exported = ek.export_native(ek.jit(model) if compiled else model, (x,), tmp_path / "libmodel.so")
    assert "const float *input0 /* [2][6] */" in exported.header.read_text("utf-8")
    outputs = [np.zeros_like(wanted)]
    assert in_c(exported, [x], outputs) == (0, "done")
    np.testing.assert_allclose(outputs[0], wanted, rtol=1e-6)


def test_names_are_made_fit_for_c():
    from eshkol.tensors.export import _identifiers

    made = _identifiers(["x", "X", "größe", "2d", "__", "while", "model", "x_2", "a.b"], {"d_model"})
    assert made == ["x", "X_2", "gr__e", "x2d", "x_3", "while_2", "model_2", "x_2_2", "a_b"]


# --- what goes wrong --------------------------------------------------------------------------------

CALLS = """
#include <stdio.h>
#include <string.h>
#include "take.h"

int main(void)
{
    int64_t good[3] = {0, -6, 5}, bad[3] = {0, 6, 1};
    float out[12] = {0}, again[12] = {0};
    char raw[64];
    take_model *model = take_new(1);
    int codes[] = {
        take_check(), take_new(-1) == NULL, take_run(NULL, good, out), take_run(model, NULL, out),
        take_run(model, good, NULL), take_run(model, (const int64_t *)(raw + 1 - (uintptr_t)raw % 2), out),
        take_run(model, good, (float *)good), take_run(model, good, out),
    };
    int fault = take_run(model, bad, again);
    for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
        printf("%d%s|", codes[k], codes[k] > 1 ? take_error(codes[k]) : "");
    printf("%d|%s|%s|", fault >= TAKE_DATA, take_error(fault), take_error(-5));
    fault = take_run(model, good, again);
    printf("%d|%d\\n", fault, memcmp(out, again, sizeof out));
    take_free(model);
    take_free(NULL);
    return out[0] == 0 && out[4] == 0 && out[8] == 20 ? 0 : 9;
}
"""


@needs_compiler
@pytest.mark.parametrize("language", ["c", "cc"])
def test_codes_and_their_messages(language, tmp_path):
    if language == "cc" and shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    table = ek.arange(24).cast(ek.float32).reshape(6, 4)
    exported = ek.export_native(lambda index: ek.take(table, index, 0), ek.tensor([0, 1, 2]), tmp_path / "libtake.so")
    done = subprocess.run([built(CALLS, exported, language=language)], capture_output=True, text=True, check=True)
    codes = done.stdout.strip().split("|")
    assert codes[:2] == ["0", "1"]
    assert codes[2:5] == ["1"] * 3
    assert codes[5].startswith("4an input or output is not aligned")
    assert codes[6].startswith("5an output overlaps")
    assert codes[7:9] == ["0", "1"]
    assert "take(float32[6, 4], int64[3]): an index is out of range for an axis of extent 6" in codes[9]
    assert "test_export.py, line" in codes[9]
    assert codes[10] == "there is no such error"
    assert codes[11:] == ["0", "0"]


BUSY = """
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "slow.h"

static slow_model *model;
static atomic_int done;

static void *work(void *x)
{
    float out[64];
    while (!atomic_load(&done)) {
        int code = slow_run(model, x, out);
        if (code != SLOW_OK && code != SLOW_BUSY)
            return x;
    }
    return NULL;
}

int main(void)
{
    float x[64] = {0}, out[64];
    void *failed;
    pthread_t thread;
    int code;
    model = slow_new(1);
    pthread_create(&thread, NULL, work, x);
    while ((code = slow_run(model, x, out)) == SLOW_OK)
        ;
    atomic_store(&done, 1);
    pthread_join(thread, &failed);
    printf("%d %s", failed == NULL ? code : -1, slow_error(code));
    slow_free(model);
}
"""


@needs_compiler
def test_a_model_that_runs_is_busy(tmp_path):
    def slow(x):
        return ek.scan(lambda h, _: (ek.tanh(h), None), x, None, length=2000)[0]

    exported = ek.export_native(slow, weights(64), tmp_path / "libslow.so")
    assert ran(built(BUSY, exported)) == (6, "the model is running in another thread")


@needs_compiler
def test_a_cpu_that_lacks_something_is_told(tmp_path, monkeypatch):
    missing = Need("flight", HWCAP, 0, 0, 63) if simd.target().is_arm else Need("flight", 1, 0, 0, 31)
    monkeypatch.setattr(export, "needs", lambda target: [*needs(target), missing])
    exported = ek.export_native(lambda x: x + 1, weights(3), tmp_path / "libplus.so")
    assert "flight" in exported.header.read_text("utf-8")
    program = built(
        '#include "plus.h"\n#include <stdio.h>\nint main(void) {'
        'printf("%d %s", plus_check(), plus_new(1) == NULL ? plus_error(plus_check()) : ""); }', exported
    )  # fmt: skip
    assert ran(program) == (3, "this CPU lacks instructions that the library was compiled for")


@pytest.mark.parametrize("level", list(simd.Level))
def test_every_level_says_what_it_needs(level):
    found = [n.name for n in needs(simd.plain_target(level))]
    assert len(found) == len(set(found)) or level in (simd.Level.AVX2, simd.Level.AVX512)
    wanted = {simd.Level.NONE: None, simd.Level.SSE42: "sse4.2", simd.Level.AVX2: "fma", simd.Level.AVX512: "avx512bw",
              simd.Level.NEON: "asimd"}[level]  # fmt: skip
    assert (wanted in found) if wanted else not found


def test_this_machine_has_what_it_needs():
    assert needs(simd.target()) or simd.chosen_level() is simd.Level.NONE


def refused(error, text, function=lambda x: x + 1, path="libmodel.so", folder=None, **how):
    with pytest.raises(error, match=text) as found:
        ek.export_native(function, weights(3, 3), (folder or Path()) / path, **how)
    return str(found.value)


def test_what_cannot_be_exported_is_refused(tmp_path):
    told = refused(TensorError, "computed by the host", lambda x: ek.sort(x)[0], folder=tmp_path)
    assert "sort(float32[3, 3])" in told
    assert "lambda x: ek.sort(x)[0]" in told
    refused(TraceError, "known", lambda x: x if x.sum() > 0 else -x, folder=tmp_path)
    refused(TensorError, "ends in .so", path="model.dll")
    refused(TensorError, "no folder", path="no/such/libmodel.so")
    refused(TensorError, "names of C functions", path="lib2nd.so")
    refused(TensorError, "names of C functions", path="libeshkol.so")
    refused(BackendUnavailable, "no level 'sse9'", folder=tmp_path, level="sse9")
    refused(TensorError, "no type in C", lambda x: (x, ek.tensor([1j])), folder=tmp_path)
    absent = "avx2" if simd.target().is_arm else "neon"
    refused(BackendUnavailable, "another kind of machine", folder=tmp_path, level=absent)
    assert list(tmp_path.iterdir()) == []


@needs_compiler
def test_a_missing_or_failing_compiler_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -x")
    refused(BackendUnavailable, "no such command", folder=tmp_path)
    monkeypatch.setenv("CC", f"{shlex.quote(str(COMPILER))} --no-such-flag")
    refused(BackendError, "no-such-flag", folder=tmp_path)
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    refused(BackendUnavailable, "there is none", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- objects ----------------------------------------------------------------------------------------

KERNEL = """
define dso_local i64 @kernel(i64 %a, i64 %b) {
  %x = zext i64 %a to i128
  %y = zext i64 %b to i128
  %high = shl i128 %x, 64
  %q = call i128 @__udivti3(i128 %high, i128 %y)
  %r = trunc i128 %q to i64
  ret i64 %r
}
"""


@needs_compiler
def test_objects_of_the_same_names_are_linked(tmp_path):
    code = compile_object(KERNEL + DIVISION_FUNCTION, simd.target())
    for prefix in ("one_", "two_"):
        (tmp_path / f"{prefix}.o").write_bytes(renamed(code, prefix))
    (tmp_path / "main.c").write_text(
        "#include <stdint.h>\nint64_t one_kernel(int64_t, int64_t), two_kernel(int64_t, int64_t);\n"
        "int main(void) { return one_kernel(3, 6) != INT64_MIN || two_kernel(1, 4) != INT64_C(1) << 62; }"
    )
    subprocess.run([COMPILER, "main.c", "one_.o", "two_.o", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"]).returncode == 0


def test_objects_of_other_machines_are_renamed_too():
    for level in (simd.Level.AVX2, simd.Level.NEON):
        made = renamed(compile_object(KERNEL + DIVISION_FUNCTION, simd.plain_target(level)), "mine_")
        assert b"\0mine_kernel\0" in made


def test_what_is_no_elf_is_refused():
    with pytest.raises(BackendError, match="not ELF"):
        renamed(b"\xcf\xfa\xed\xfe" + bytes(60), "x_")


# --- the page ---------------------------------------------------------------------------------------


@needs_compiler
def test_the_page_is_true(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "export.md").read_text("utf-8")
    python = "".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    program, _ = re.findall(r"^```c\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    commands, shown = re.findall(r"^```(?:sh|text)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CC", raising=False)
    exec(compile(python, "docs/export.md", "exec"), {"__name__": "page"})
    (tmp_path / "main.c").write_text(program, encoding="utf-8")
    done = subprocess.run(["sh", "-e", "-c", commands], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown


@needs_compiler
def test_the_example(capsys):
    spec = importlib.util.spec_from_file_location("export_example", ROOT / "examples" / "export.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    assert "from C" in capsys.readouterr().out


# --- slow -------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("model", [perceptron, convolutions, attention, recurrence, integers])
def test_the_address_sanitizer_finds_nothing(model, tmp_path, monkeypatch):
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g")
    if subprocess.run([COMPILER, *flags, probe, "-o", tmp_path / "probe"], capture_output=True).returncode:
        pytest.skip("the compiler has no address sanitizer")
    monkeypatch.setenv("CC", shlex.join([str(COMPILER), *flags]))
    function, args = model()
    check(function, args, tmp_path, threads=2, flags=flags)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("seed", range(8))
def test_random_functions(seed, tmp_path):
    """Many small ops over values of one shape, with some of the values on the way as results, twice now and then."""
    dice = np.random.default_rng(seed)
    ops = [
        lambda x, y: x + y, lambda x, y: x * y - 0.5, lambda x, y: ek.tanh(x @ y.T) @ y, lambda x, y: ek.softmax(x, -1),
        lambda x, y: x - y.sum(0, keepdims=True), lambda x, y: ek.where(x > y, x, y), lambda x, y: x.reshape(3, 8).T,
        lambda x, y: ek.cond(x.sum() > y.sum(), lambda x, y: x, lambda x, y: -y, x, y),
        lambda x, y: ek.scan(lambda h, z: (ek.sin(h + z), h), x[0], y)[1], lambda x, y: ek.relu(x),
        lambda x, y: ek.take(x, y.sum(1).cast(ek.int32) % 8, 0), lambda x, y: ek.concat([x[4:], y[:4]], 0),
    ]  # fmt: skip
    choices = [(dice.integers(len(ops)), *dice.integers(0, k + 2, 2)) for k in range(14)]
    kept = [*dice.integers(0, 16, 5), 15]

    def random(a, b):
        values = [a, b]
        for op, x, y in choices:
            made = ops[op](values[x], values[y])
            values.append(made.reshape(8, 3) if made.shape == (8, 3) else made[:8, :3])
        return [values[k] for k in kept]

    check(random, (weights(8, 3), weights(8, 3)), tmp_path)


@pytest.mark.slow
@needs_compiler
def test_a_hundred_megabytes_of_weights(tmp_path):
    w = weights(5000, 5300)
    exported = check(lambda x: x @ w, (weights(2, 5000),), tmp_path)
    assert exported.library.stat().st_size > 100e6
