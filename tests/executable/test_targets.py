"""`eshkol build --target`: programs for other machines than this one, and what is refused by name."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_executables import PROGRAM

from batches import of_each
from eshkol.cli.main import main
from eshkol.codegen import passing
from eshkol.codegen.compiling import entries_text
from eshkol.errors import BackendUnavailable
from eshkol.executable.targets import destination

# A model, whose kernels are another machine's as well; sixteenths are exact in whatever order they are added.
MODEL = """
(define layer
  (compile-ahead (lambda (x w) (relu (matmul x (tensor-sub w 0.25)))) (zeros 2 3) (zeros 3 2)))
(if (equal? (cadr (command-line)) "all")
    (tell (layer #(1 2 -3 4 5 6) #(1 -1 0.5 0.25 0.0625 -4))))
"""


def asked(name: str, *, static: bool = False) -> tuple[str, list[str]]:
    where = destination(name, native=False, static=static, what="an executable")
    return where.target.triple, where.compiler


def test_machines_have_several_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true --for-it")  # a compiler for whatever is asked for
    for name, triple in (
        ("aarch64-linux-gnu", "aarch64-unknown-linux-gnu"),
        ("ARM64-unknown-linux-musl", "aarch64-unknown-linux-musl"),
        ("amd64-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("x86_64-pc-linux-musl", "x86_64-unknown-linux-musl"),
    ):
        assert asked(name) == (triple, ["true", "--for-it"])
    assert {asked(f"{kind}-linux-musl", static=True)[0][:6] for kind in ("x86_64", "aarch64")} == {"x86_64", "aarch6"}


@of_each(
    "name, why",
    [
        ("x86_64-windows-gnu", "POSIX"),
        ("aarch64-macos", "Mach-O"),
        ("arm64-apple-darwin23", "Mach-O"),
        ("wasm32-wasi", "stack that can be copied"),
        ("riscv64-linux-gnu", "x86-64 and AArch64"),
        ("x86_64-freebsd", "no machine that executables are made for"),
        ("x86_64-linux-uclibc", "no machine that executables are made for"),
        ("aarch64", "no machine that executables are made for"),
    ],
)
def test_what_cannot_be_built_for_is_refused_by_name(name: str, why: str) -> None:
    with pytest.raises(BackendUnavailable, match=why) as found:
        asked(name)
    assert name in str(found.value)
    assert "hint: aarch64-linux, x86_64-linux" in str(found.value)


def test_without_a_compiler_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("eshkol.support.c_compiler.find_spec", lambda name: None)
    Path("p.esk").write_text("(display 1)")
    assert main(["build", "p.esk", "--target", "aarch64-linux-musl"]) == 1
    said = capfd.readouterr().err
    assert "ziglang" in said
    assert "eshkol[cross]" in said
    assert main(["build", "p.esk", "--target", "aarch64-linux", "--native"]) == 2
    assert not Path("p").exists()


def test_arguments_pass_as_the_other_kind_of_processor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true")
    here, before = passing.registers(), entries_text()[0]
    found = {}
    for kind in ("x86_64", "aarch64"):
        with destination(f"{kind}-linux-musl", native=False, static=False, what="an executable").passing():
            found[kind] = entries_text()[0]
            assert passing.registers() == passing.registers_of(kind)
    assert found["x86_64"] != found["aarch64"]
    assert before in found.values()
    assert (passing.registers(), entries_text()[0]) == (here, before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["aarch64", "x86_64"])
def test_a_program_for_another_machine(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """All of the language, linked for it; and run, where there is an emulator (or it is this kind of machine)."""
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (pip install 'eshkol[cross]')")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("p.esk").write_text(PROGRAM + MODEL, encoding="utf-8")
    assert main(["build", "p.esk", "--target", f"{kind}-linux-musl", "--static", "--strip"]) == 0
    assert Path("p").read_bytes()[18:20] == {"x86_64": b"\x3e\0", "aarch64": b"\xb7\0"}[kind]
    emulator = shutil.which(f"qemu-{kind}") or shutil.which(f"qemu-{kind}-static")
    if emulator is None:
        pytest.skip(f"it is linked, but there is no qemu-{kind} to run it")
    given = b"a line\nx"
    done = subprocess.run([emulator, "./p", "all"], input=given, capture_output=True, timeout=300)
    assert main(["build", "p.esk", "-o", "here"]) == 0
    here = subprocess.run(["./here", "all"], input=given, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (here.returncode, here.stdout)
    failed = subprocess.run([emulator, "./p", "nested"], capture_output=True, timeout=300)
    assert failed.stderr == subprocess.run(["./here", "nested"], capture_output=True, timeout=60).stderr
