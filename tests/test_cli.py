"""The `eshkol` command: what it prints, what it returns, and that a fault is one clear line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from eshkol.atlas.jsonform import loads
from eshkol.atlas.optimize import PASSES
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends import NAMES
from eshkol.cli import atlas as cli_atlas
from eshkol.cli import main as cli
from eshkol.cli import values as cli_values
from eshkol.cli.main import main
from eshkol.errors import CacheError
from eshkol.version import __version__

ROOT = Path(__file__).parents[1]
SCALE = """\
.program scale
.scalar a F32
.buffer x F32
.buffer y F32 4
    LDG.F32 r0, [a]
    LDG.F32 r1, [x+r255*4]
    MUL r2, r0, r1
    STG.F32 [y+r255*4], r2
"""
COPY = ".buffer x {ty}\n.buffer y {ty}\nLDG.{ty} r0, [x+r255*{size}]\nSTG.{ty} [y+r255*{size}], r0\n"
KERNEL = {
    "version": "1.0",
    "kernel": {
        "name": "fill",
        "params": [{"name": "out", "kind": "device_ptr", "element_type": "I32"}],
        "body": [
            {
                "kind": "assign",
                "target": {"kind": "index", "array": "out", "index": {"kind": "call", "function": "global_id"}},
                "value": {"kind": "literal", "value": 7},
            }
        ],
    },
}
CIRCUIT = "merge@c00[c01,c02]"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """A wide terminal, a cache of its own, and no switches from outside."""
    for name in ("ESHKOL_DEBUG", "ESHKOL_DUMP", "ESHKOL_CHECK", "ESHKOL_CACHE_BYTES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("ESHKOL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def call(capsys):
    """Runs a command line; gives exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def files(tmp_path):
    """One file of each kind: the same three programs in the notations they come in."""
    contents = {
        "scale.atlas": SCALE,
        "scale.json": None,
        "kernel.json": json.dumps(KERNEL),
        "add.circuit": CIRCUIT,
    }
    assert main(["atlas", "asm", "--format", "atlas", str(write(tmp_path, "scale.atlas", SCALE)),
                 "-o", str(tmp_path / "scale.json")]) == 0  # fmt: skip
    return {name: tmp_path / name if text is None else write(tmp_path, name, text) for name, text in contents.items()}


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    assert text.endswith("\n")
    assert "Traceback" not in text
    return text.strip()


def run_process(*arguments: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("ESHKOL_DEBUG")}
    return subprocess.run(
        [sys.executable, "-m", "eshkol", *arguments],
        env={**surroundings, "PYTHONPATH": str(ROOT / "src"), **env},
        capture_output=True,
        text=True,
        input=stdin,
        timeout=60,
    )


# --- the command itself -----------------------------------------------------------------------------


def test_version(call):
    assert call("--version") == (0, f"eshkol {__version__}\n", "")


@pytest.mark.parametrize("arguments", [("--help",), ("-h",)])
def test_help_names_every_command_and_shows_examples(call, arguments):
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    for word in ("doctor", "atlas", "examples:", "eshkol atlas run", "ESHKOL_CACHE_DIR", "ESHKOL_DEBUG", "exit codes"):
        assert word in out


def test_atlas_alone_shows_its_commands(call):
    code, out, _ = call("atlas")
    assert code == 0
    for verb in ("run", "asm", "dis", "check", "opt", "emit", ".circuit"):
        assert verb in out


@pytest.mark.parametrize("verb", ["run", "asm", "dis", "check", "opt", "emit"])
def test_every_verb_has_help(call, verb):
    code, out, err = call("atlas", verb, "--help")
    assert (code, err) == (0, "")
    assert "FILE" in out
    assert "--format" in out


def test_help_of_run_explains_every_form_of_value(call):
    out = call("atlas", "run", "--help")[1]
    for form in ("1,2,3", "@file.npy", "zeros:N", "ones:N", "arange:N", "random:N[:SEED]", "pool:BYTES"):
        assert form in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--vers"], "unrecognized arguments"),  # no abbreviations: they break when options are added
        (["doctor", "extra"], "unrecognized arguments: extra"),
        (["atlas", "rum"], "invalid choice: 'rum'"),
        (["atlas", "run"], "arguments are required: FILE"),
        (["atlas", "run", "x.atlas", "--lanes", "many"], "--lanes: expected a whole number, not 'many'"),
        (["atlas", "run", "x.atlas", "--lanes", "0"], "at least 1"),
        (["atlas", "run", "x.atlas", "--lanes", "-3"], "--lanes"),
        (["atlas", "run", "x.atlas", "--grid", "1,2,3,4"], "at most three numbers"),
        (["atlas", "run", "x.atlas", "--block", "a"], "--block"),
        (["atlas", "run", "x.atlas", "--shared", "1k"], "--shared"),
        (["atlas", "run", "x.atlas", "--format", "pdf"], "invalid choice: 'pdf'"),
        (["atlas", "run", "a\nb.atlas", "--lanes", "x\ny"], "--lanes"),
    ],
)
def test_argument_errors_are_one_line_and_exit_2(call, arguments, words):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in one_line(err)
    assert err.startswith("eshkol")


def test_an_error_inside_is_one_line_and_exit_1(call, monkeypatch):
    def boom() -> None:
        raise RuntimeError("it broke\nin two lines")

    monkeypatch.setattr(cli, "examine", boom)
    code, out, err = call("doctor")
    assert (code, out) == (1, "")
    assert one_line(err) == "internal error: RuntimeError: it broke (ESHKOL_DEBUG=1 shows the traceback)"
    monkeypatch.setenv("ESHKOL_DEBUG", "1")
    code, _, err = call("doctor")
    assert code == 1
    assert "Traceback" in err
    assert "in boom" in err


def test_an_operating_system_error_is_one_line(call, monkeypatch):
    def boom() -> None:
        raise PermissionError(13, "Permission denied", "secret")

    monkeypatch.setattr(cli, "examine", boom)
    monkeypatch.setattr(cli, "_drop_stdout", lambda: None)
    code, _, err = call("doctor")
    assert (code, one_line(err)) == (1, "error: Permission denied: 'secret'")


def test_too_little_memory_is_one_line(call, monkeypatch):
    def boom() -> None:
        raise MemoryError("cannot have 2 GiB")

    monkeypatch.setattr(cli, "examine", boom)
    code, _, err = call("doctor")
    assert (code, one_line(err)) == (1, "error: not enough memory: cannot have 2 GiB")


def test_interrupt(call, monkeypatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "examine", interrupted)
    code, out, err = call("doctor")
    assert (code, out, one_line(err)) == (130, "", "interrupted")


# --- doctor -----------------------------------------------------------------------------------------


def test_doctor_as_a_table(call):
    code, out, err = call("doctor")
    assert (code, err) == (0, "")
    for word in (__version__, "Python", "NumPy", np.__version__, "LLVM", "CPU", "cache", "0 entries, 0 bytes"):
        assert word in out
    for name in NAMES:
        assert f"backend {name}" in out


@pytest.mark.parametrize("width", ["40", "80"])
def test_doctor_fits_the_terminal(call, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    out = call("doctor")[1]
    assert max(map(len, out.splitlines())) <= int(width)


def test_doctor_as_json(call, tmp_path):
    code, out, _ = call("doctor", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["eshkol"] == __version__
    assert report["numpy"] == np.__version__
    assert report["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert set(report["backends"]) == set(NAMES)
    assert report["backends"]["reference"] == {
        "available": True, "reason": None, "commands": [], "targets": ["atlas", "expanded"], "machines": []
    }  # fmt: skip
    assert report["cache"]["directory"] == str(tmp_path / "cache")
    assert isinstance(report["cpu"]["features"], list)
    assert report["platform"]


class Strange:
    """Backends that are not there for many reasons, and one whose devices say little of themselves."""

    targets = ("text",)
    reasons: ClassVar = {
        "one": "moonpy is not installed: pip install eshkol[moon]",
        "two": "no library: apt install libmoon1 (a driver has it, too; on a Mac: brew install moon moon-loader)",
        "three": "the moon is not full",
        "four": "install the driver, or one for CPUs: apt install moon-drivers and then pip install 'eshkol[moon,sun]'",
        "five": None,
    }  # fmt: skip

    def __init__(self, name):
        self.name = name

    def unavailable(self):
        if self.name == "six":
            raise RuntimeError("libmoon.so: cannot be loaded")
        return self.reasons[self.name]

    def machines(self):
        facts = {"number": 1, "name": "Moon 2", "float64": False, "subgroups": True}
        return [{"name": "Moon"}, facts] if self.name == "five" else []


def test_doctor_shows_any_backend(call, monkeypatch):
    """Ten or more of them, with the commands of their reasons, and devices that leave out what they do not know."""
    from eshkol import backends

    monkeypatch.setattr(backends, "NAMES", ("one", "two", "three", "four", "five", "six"))
    monkeypatch.setattr(backends, "backend_class", Strange)
    monkeypatch.setenv("COLUMNS", "200")
    found = json.loads(call("doctor", "--json")[1])["backends"]
    assert {name: backend["commands"] for name, backend in found.items()} == {
        "one": ["pip install eshkol[moon]"], "two": ["apt install libmoon1", "brew install moon moon-loader"],
        "three": [], "four": ["apt install moon-drivers", "pip install 'eshkol[moon,sun]'"], "five": [], "six": [],
    }  # fmt: skip
    assert found["six"]["reason"] == "it does not load: RuntimeError: libmoon.so: cannot be loaded"
    said = call("doctor")[1]
    for line in (
        "not available: moonpy is not installed ", "try: pip install eshkol[moon] ",
        "not available: the moon is not full",
        "0: Moon ", "1: Moon 2, without float64 ", "not available: it does not load: RuntimeError",
    ):  # fmt: skip
        assert line in said


def test_doctor_shows_the_vector_unit(call, monkeypatch):
    simd = pytest.importorskip("eshkol.backends.cpu.simd")
    report = json.loads(call("doctor", "--json")[1])["simd"]
    assert report == {**simd.config().facts(), "levels": [level.value for level in simd.levels()], "problem": None}
    assert f"{report['level']}, {report['vector_bits']} bits" in call("doctor")[1]
    monkeypatch.setenv("ESHKOL_SIMD", "abacus")
    code, out, _ = call("doctor")
    assert code == 0
    assert "ESHKOL_SIMD=abacus: this machine has" in " ".join(out.replace("│", " ").split())


def test_doctor_counts_the_cache(call):
    from eshkol.support.store import ProgramCache

    ProgramCache().get_or_build({"program": "p"}, lambda: b"x" * 5000)
    report = json.loads(call("doctor", "--json")[1])
    assert report["cache"]["entries"] == 1
    assert report["cache"]["bytes"] >= 5000
    assert "1 entry, 4.9 KiB" in call("doctor")[1]


def test_doctor_with_the_cache_off_or_out_of_order(call, monkeypatch):
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "0")
    assert "off: nothing is kept on disk" in call("doctor")[1]
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "plenty")
    code, out, _ = call("doctor")
    assert code == 0
    assert "ESHKOL_CACHE_BYTES is 'plenty'" in out


def test_doctor_without_llvm(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert json.loads(call("doctor", "--json")[1])["llvm"] is None
    assert "llvmlite is not installed" in call("doctor")[1]


@pytest.mark.parametrize("where", ["llvmlite", "llvmlite.binding"])
def test_llvm_that_is_installed_but_does_not_load(tmp_path, where):
    """As where the library in the wheel needs a newer libc."""
    package = tmp_path / "llvmlite"
    package.mkdir()
    broken = "raise OSError('libllvmlite.so: no such thing')"
    (package / "__init__.py").write_text(broken if where == "llvmlite" else "")
    (package / "binding.py").write_text(broken)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = run_process("doctor", "--json", PYTHONPATH=path)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert (report["llvm"], report["simd"]) == (None, None)
    assert report["backends"]["cpu"]["reason"] == "llvmlite does not load: libllvmlite.so: no such thing"
    done = run_process("atlas", "emit", "-", "--format", "atlas", "--backend", "cpu", stdin="EXIT", PYTHONPATH=path)
    assert done.returncode == 1
    assert "the cpu backend is not available: llvmlite does not load" in one_line(done.stderr)


def test_doctor_shows_the_threads(call, monkeypatch):
    monkeypatch.setenv("ESHKOL_THREADS", "3")
    assert json.loads(call("doctor", "--json")[1])["threads"] == {"count": 3, "problem": None}
    monkeypatch.setenv("ESHKOL_THREADS", "abc")
    code, out, _ = call("doctor")
    assert code == 0
    assert "ESHKOL_THREADS is 'abc'" in out


@pytest.mark.parametrize("below", ["", "deep/inside"])
def test_doctor_says_that_the_cache_cannot_be_written(call, monkeypatch, tmp_path, below):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ESHKOL_CACHE_DIR", str(tmp_path / "file" / below))
    code, out, _ = call("doctor", "--json")
    report = json.loads(out)["cache"]
    assert (code, report["on"]) == (0, False)
    assert report["problem"].endswith(f"'{tmp_path / 'file'}' is not a folder")
    assert "off: nothing is kept on disk" in call("doctor")[1]


def test_doctor_says_why_a_backend_is_missing(call, monkeypatch):
    from eshkol.backends.reference import ReferenceBackend

    monkeypatch.setattr(ReferenceBackend, "unavailable", classmethod(lambda cls: "no [such] machine"))
    assert "not available: no [such] machine" in call("doctor")[1]
    report = json.loads(call("doctor", "--json")[1])
    assert report["backends"]["reference"]["reason"] == "no [such] machine"


def test_doctor_survives_a_backend_that_cannot_be_imported(call, monkeypatch):
    import eshkol.backends

    def broken(name: str) -> None:
        raise ImportError("no module named 'gpu'")

    monkeypatch.setattr(eshkol.backends, "backend_class", broken)
    assert "not available: no module named 'gpu'" in call("doctor")[1]


def test_sizes_are_for_people():
    shown = [cli.size_of(n) for n in (0, 1023, 1024, 1536, 5 << 20, 3 << 30, 5000 << 30)]
    assert shown == ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3.0 GiB", "5000.0 GiB"]


# --- translating ------------------------------------------------------------------------------------

KINDS = ["scale.atlas", "scale.json", "kernel.json", "add.circuit"]


@pytest.mark.parametrize("name", KINDS)
def test_asm_and_dis_are_inverse_on_every_kind(call, files, name, tmp_path):
    code, text, err = call("atlas", "asm", files[name])
    assert (code, err) == (0, "")
    program = loads(text)
    code, text, err = call("atlas", "dis", files[name])
    assert (code, err) == (0, "")
    assert assemble(text) == program
    assert program == cli_atlas.load(str(files[name]))


@pytest.mark.parametrize("verb", ["asm", "dis", "opt", "emit"])
def test_output_goes_to_a_file(call, files, tmp_path, verb):
    target = tmp_path / "out"
    assert call("atlas", verb, files["scale.atlas"], "-o", target) == (0, "", "")
    assert target.read_text() == call("atlas", verb, files["scale.atlas"])[1]


def test_output_that_cannot_be_written(call, files, tmp_path):
    code, _, err = call("atlas", "dis", files["scale.atlas"], "-o", tmp_path / "nowhere" / "out")
    assert code == 2
    assert "cannot write" in one_line(err)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("scale.atlas", "ok; 4 instructions; a F32, x F32[], y F32[4]; extensions: none"),
        ("scale.json", "ok; 4 instructions; a F32, x F32[], y F32[4]; extensions: none"),
        ("kernel.json", "out I32[]; extensions: none"),
        ("add.circuit", "no parameters; extensions: ParallelMapBinary"),
    ],
)
def test_check_says_what_a_program_uses(call, files, name, words):
    code, out, err = call("atlas", "check", files[name])
    assert (code, err) == (0, "")
    assert words in one_line(out)
    assert out.startswith(str(files[name]))


def test_check_counts_extensions_and_names_pools(call, tmp_path):
    text = ".pool q\nMOV_IMM.F32 r0, 1\nRCP r1, r0\nRCP r2, r1\nPoolStore.F32 q, r2, offset=0\n"
    out = call("atlas", "check", write(tmp_path, "p.atlas", text))[1]
    assert "pool q; extensions: RCP ×2" in out


def test_check_shows_an_error_with_its_line(call, tmp_path):
    path = write(tmp_path, "bad.atlas", "MOV_IMM.F32 r0, 1\n    ADD r1, r0, r9\n")
    code, out, err = call("atlas", "check", path)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert "r9 is read before it is written" in err
    assert f"--> {path}:2:5" in err
    assert "^~~" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.atlas", "FROB r1\n", "expected an instruction, found 'FROB'"),
        ("b.json", "{", "this is not JSON"),
        ("c.json", "[1, 2]", "neither a program nor a kernel"),
        ("d.json", '{"atlas": 1, "code": [{"op": "FROB"}]}', "d.json: code[0].op"),
        ("e.json", '{"kernel": {}}', "e.json: "),
        ("f.circuit", "mark@c99", "class 99 does not exist"),
        ("g.atlas", b"\xff\xfe", "is not UTF-8 text"),
        ("h.atlas", "BRA nowhere\n", "there is no label 'nowhere'"),
        ("i.json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_files_that_are_not_legal(call, tmp_path, name, content, words):
    code, out, err = call("atlas", "check", write(tmp_path, name, content))
    assert (code, out) == (1, "")
    assert words in err
    assert "Traceback" not in err


def test_errors_of_translators_name_the_file(call, tmp_path):
    path = write(tmp_path, "f.circuit", "mark@c99")
    assert f"--> {path}:1:6" in call("atlas", "check", path)[2]


def test_an_empty_program_is_legal(call, tmp_path):
    assert "ok; 0 instructions; no parameters" in call("atlas", "check", write(tmp_path, "e.atlas", ""))[1]


# --- reading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["run", "asm", "dis", "check", "opt", "emit"])
def test_a_missing_file_is_one_line(call, verb):
    code, out, err = call("atlas", verb, "nowhere.atlas")
    assert (code, out) == (2, "")
    assert one_line(err) == f"eshkol atlas {verb}: cannot read 'nowhere.atlas': No such file or directory"


def test_a_folder_a_strange_name_and_an_unknown_kind(call, tmp_path):
    (tmp_path / "folder.atlas").mkdir()
    code, _, err = call("atlas", "check", tmp_path / "folder.atlas")
    assert code == 2
    assert "directory" in one_line(err)
    code, _, err = call("atlas", "check", "a\0b.atlas")
    assert code == 2
    assert "cannot read" in one_line(err)
    code, _, err = call("atlas", "check", write(tmp_path, "x.txt", ""))
    assert code == 2
    assert "say --format atlas, circuit, json" in one_line(err)
    assert call("atlas", "check", tmp_path / "x.txt", "--format", "atlas")[0] == 0


def test_a_file_that_is_too_long(call, tmp_path, monkeypatch):
    monkeypatch.setattr(cli_atlas, "FILE_LIMIT", 1 << 20)
    path = write(tmp_path, "long.atlas", ";" * ((1 << 20) + 1))
    code, _, err = call("atlas", "check", path)
    assert code == 2
    assert "longer than 1 MiB" in one_line(err)


def test_standard_input(call, monkeypatch):
    def type_in(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    type_in(SCALE)
    assert call("atlas", "check", "-", "--format", "atlas")[1].startswith("<stdin>: ok; 4 instructions")
    type_in(json.dumps(KERNEL))
    assert "STG" in call("atlas", "dis", "-", "--format", "json")[1]
    type_in("FROB")
    code, _, err = call("atlas", "check", "-", "--format", "atlas")
    assert code == 1
    assert "--> <stdin>:1:1" in err
    code, _, err = call("atlas", "check", "-")
    assert code == 2
    assert "--format" in one_line(err)


# --- optimizing and emitting ------------------------------------------------------------------------

WASTEFUL = """\
.buffer y I32
    MOV_IMM.I32 r0, 2
    MOV_IMM.I32 r1, 3
    MUL r2, r0, r1
    MOV r3, r2
    ADD r9, r2, r2
    STG.I32 [y], r3
"""


@pytest.mark.parametrize("name", KINDS)
def test_opt_gives_a_program_on_every_kind(call, files, name):
    code, out, err = call("atlas", "opt", files[name])
    assert (code, err) == (0, "")
    assemble(out)


def test_opt_with_stats(call, tmp_path):
    path = write(tmp_path, "w.atlas", WASTEFUL)
    code, out, err = call("atlas", "opt", path, "--stats")
    assert code == 0
    after = assemble(out)
    assert len(after) < 6
    assert ["all", "6", str(len(after))] in [line.split() for line in err.splitlines()]
    assert ["ADD", "1", "0"] in [line.split() for line in err.splitlines()]


def test_opt_with_chosen_passes(call, tmp_path):
    path = write(tmp_path, "w.atlas", WASTEFUL)
    assert "ADD" not in call("atlas", "opt", path, "--passes", "dead_code")[1]
    assert "ADD" in call("atlas", "opt", path, "--passes", "peephole")[1]
    assert call("atlas", "opt", path, "--passes", ", ".join(PASSES))[0] == 0
    code, _, err = call("atlas", "opt", path, "--passes", "dead_code,magic")
    assert code == 2
    assert "there is no pass 'magic'; passes: " in one_line(err)


def test_opt_without_contraction(call, tmp_path):
    text = ".buffer y F32\nLDG.F32 r0, [y]\nMUL r1, r0, r0\nADD r2, r1, r0\nSTG.F32 [y], r2\n"
    path = write(tmp_path, "c.atlas", text)
    assert "FMA" in call("atlas", "opt", path)[1]
    assert "FMA" not in call("atlas", "opt", path, "--no-contract")[1]


@pytest.mark.parametrize("name", KINDS)
def test_emit_on_every_kind(call, files, name):
    code, out, err = call("atlas", "emit", files[name], "--target", "expanded")
    assert (code, err) == (0, "")
    assert not any(i.op.is_extension for i in assemble(out).instructions)
    assert assemble(call("atlas", "emit", files[name])[1]) == cli_atlas.load(str(files[name]))


def test_emit_for_what_is_not_there(call, files):
    code, _, err = call("atlas", "emit", files["scale.atlas"], "--target", "cobol")
    assert code == 2
    assert "does not emit 'cobol'; it emits atlas, expanded" in one_line(err)
    code, _, err = call("atlas", "emit", files["scale.atlas"], "--backend", "abacus")
    assert code == 2
    assert "there is no backend 'abacus'; backends: reference" in one_line(err)


def test_a_backend_that_is_not_available_is_an_error(call, files, monkeypatch):
    from eshkol.backends.reference import ReferenceBackend

    monkeypatch.setattr(ReferenceBackend, "unavailable", classmethod(lambda cls: "it is Sunday"))
    code, _, err = call("atlas", "emit", files["scale.atlas"])
    assert code == 1
    assert "the reference backend is not available: it is Sunday" in err


# --- running ----------------------------------------------------------------------------------------


def rows(out: str) -> dict[str, list[str]]:
    """The table of buffers: name → type, count, values."""
    lines = out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("buffer"))
    body = [line.split() for line in lines[start + 2 :]]
    return {row[0]: row[1:] for row in body[: next((k for k, row in enumerate(body) if not row), None)]}


def test_run_prints_what_was_written(call, files):
    arguments = ["--lanes", "4", "--param", "a=2.5", "--param", "x=1,2,3,-4e0", "--param", "y=zeros:4"]
    code, out, err = call("atlas", "run", files["scale.atlas"], *arguments)
    assert (code, err) == (0, "")
    assert out.startswith("scale on reference: 4 lanes, ")
    assert rows(out) == {"y": ["F32", "4", "2.5", "5.0", "7.5", "-10.0"]}
    assert set(rows(call("atlas", "run", files["scale.atlas"], *arguments, "--all")[1])) == {"x", "y"}


@pytest.mark.parametrize("name", ["scale.atlas", "scale.json"])
def test_run_optimized_gives_the_same(call, files, name):
    arguments = ["--lanes", "4", "--param", "a=2", "--param", "x=arange:4", "--param", "y=zeros"]
    plain, optimized = (call("atlas", "run", files[name], *arguments, *more)[1] for more in ([], ["--optimize"]))
    assert rows(plain) == rows(optimized) == {"y": ["F32", "4", "0.0", "2.0", "4.0", "6.0"]}


def test_run_a_kernel(call, files):
    out = call("atlas", "run", files["kernel.json"], "--lanes", "3", "--param", "out=zeros:3")[1]
    assert rows(out) == {"out": ["I32", "3", "7", "7", "7"]}


def test_run_a_circuit_with_class_memory(call, files):
    code, out, err = call("atlas", "run", files["add.circuit"], "--class", "0=1.5,2", "--class", "1=ones")
    assert (code, err) == (0, "")
    (line,) = [line.split() for line in out.splitlines()[4:]]
    assert line[:6] == ["2", "0", "F32", "2.5", "3.0", "1.0"]


def test_class_memory_is_read_by_the_type_the_program_uses(call, tmp_path):
    text = "MOV_IMM.I16 r0, -7\nSTG.I16 [class 5+256], r0\n"
    path = write(tmp_path, "c.atlas", text)
    assert ["5", "1", "I16", "-7", "0"] in [line.split()[:5] for line in call("atlas", "run", path)[1].splitlines()]
    out = call("atlas", "run", path, "--class-type", "u8")[1]
    assert ["5", "1", "U8", "249", "255", "0"] in [line.split()[:6] for line in out.splitlines()]
    assert len(call("atlas", "run", path, "--class", "5@1=-7")[1].splitlines()) == 1  # nothing changed


def test_many_changed_pages_are_cut_short(call, tmp_path):
    text = "MOV_IMM.U64 r0, 256\nMUL r1, r255, r0\nMOV_IMM.U8 r2, 1\nSTG.U8 [r1], r2\n"
    out = call("atlas", "run", write(tmp_path, "m.atlas", text), "--lanes", "200")[1]
    assert out.rstrip().endswith("…")
    assert len(out.splitlines()) < 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--class", "96=1"], "a class of 0 to 95"),
        (["--class", "1@48=1"], "a page of 0 to 47"),
        (["--class", "x=1"], "expected a class"),
        (["--class", "1"], "expected CLASS[@PAGE]=VALUE"),
        (["--class", "1@47=zeros:65"], "do not fit"),
        (["--class", "1=zeros:0"], "do not fit"),
        (["--class", "1=a"], "'a' is not a number"),
        (["--class-type", "F99"], "unknown type 'F99'"),
        (["--class-type", "U4096"], "does not fit a page"),
    ],
)
def test_class_memory_arguments_that_make_no_sense(call, files, arguments, words):
    code, out, err = call("atlas", "run", files["add.circuit"], *arguments)
    assert (code, out) == (2, "")
    assert words in one_line(err)


def copied(call, tmp_path, ty: str, value: str, lanes: int = 4) -> list[str]:
    """What a buffer filled from VALUE holds, as the command prints it."""
    path = write(tmp_path, "copy.atlas", COPY.format(ty=ty, size=Type[ty].size_bytes))
    more = ["--block", lanes, "--param", f"x={value}", "--param", f"y=zeros:{lanes}"]
    code, out, err = call("atlas", "run", path, *more)
    assert code == 0, err
    return rows(out)["y"][2:]


@pytest.mark.parametrize(
    ("ty", "value", "expected"),
    [
        ("F32", "zeros:4", ["0.0"] * 4),
        ("F32", "ones:4", ["1.0"] * 4),
        ("F64", "arange:4", ["0.0", "1.0", "2.0", "3.0"]),
        ("F16", "0.1, 2,-inf,nan", ["0.1", "2.0", "-inf", "nan"]),
        ("BF16", "1,2.5,3,4", ["1.0", "2.5", "3.0", "4.0"]),
        ("I8", "-128,127,0x7f,-1", ["-128", "127", "127", "-1"]),
        ("U64", "18446744073709551615,0,1,2", ["18446744073709551615", "0", "1", "2"]),
        ("U256", f"{2**256 - 1},1,2,3", [str(2**256 - 1), "1", "2", "3"]),
        ("I128", "arange:4", ["0", "1", "2", "3"]),
        ("U128", "ones:4", ["1"] * 4),
    ],
)
def test_every_form_of_value(call, tmp_path, ty, value, expected):
    assert copied(call, tmp_path, ty, value) == expected


def test_random_values_follow_the_seed(call, tmp_path):
    first, again, other = (copied(call, tmp_path, "F64", v) for v in ("random:4", "random:4:0", "random:4:1"))
    assert first == again != other
    assert all(0 <= float(v) < 1 for v in first + other)
    assert all(0 <= int(v) < 100 for v in copied(call, tmp_path, "U8", "random:4:7"))


def test_a_single_number_fills_a_buffer_of_one(call, tmp_path):
    assert copied(call, tmp_path, "F32", "4", lanes=1) == ["4.0"]


def test_long_buffers_are_summarized(call, tmp_path):
    assert copied(call, tmp_path, "I32", "arange:100", 100) == ["0", "1", "2", "3", "4", "5", "…", "97", "98", "99"]
    assert len(copied(call, tmp_path, "I32", "arange:12", 12)) == 12


def test_an_empty_buffer(call, tmp_path):
    path = write(tmp_path, "e.atlas", ".buffer x F32\nParallelMap.F32.Relu [x], [x], count=0\n")
    assert rows(call("atlas", "run", path, "--param", "x=zeros:0")[1]) == {"x": ["F32", "0", "(empty)"]}


def test_pools(call, tmp_path):
    text = ".pool q\nMOV_IMM.U8 r0, 9\nPoolStore.U8 q, r0, offset=1\n"
    path = write(tmp_path, "p.atlas", text)
    out = call("atlas", "run", path, "--param", "q=pool:4")[1]
    assert "pool q   bytes       4   0 9 0 0" in out
    code, _, err = call("atlas", "run", path, "--param", "q=zeros:4")
    assert code == 2
    assert "a pool is given as pool:BYTES, not 'zeros:4'" in one_line(err)


def test_a_program_that_only_reads_prints_no_table(call, tmp_path):
    path = write(tmp_path, "r.atlas", ".buffer x F32\nLDG.F32 r0, [x]\n")
    assert len(call("atlas", "run", path, "--param", "x=1")[1].splitlines()) == 1
    assert rows(call("atlas", "run", path, "--param", "x=1", "--all")[1]) == {"x": ["F32", "1", "1.0"]}


# --- .npy files -------------------------------------------------------------------------------------


def test_save_and_load(call, tmp_path):
    data = np.arange(6, dtype=np.float32).reshape(2, 3) / 3
    np.save(tmp_path / "x.npy", data)
    path = write(tmp_path, "copy.atlas", COPY.format(ty="F32", size=4))
    saved = tmp_path / "y.data"  # the name is kept as it is
    arguments = ["--block", 6, "--param", f"x=@{tmp_path / 'x.npy'}", "--param", "y=zeros:6", "--save", f"y={saved}"]
    assert call("atlas", "run", path, *arguments)[0] == 0
    assert np.array_equal(np.load(saved), data.ravel())


@pytest.mark.parametrize(
    ("ty", "values"),
    [("U256", f"{2**255 + 5},7"), ("I128", "-1,7"), ("BF16", "1.5,-2"), ("F16", "0.1,2"), ("U8", "1,2")],
)
def test_saved_buffers_of_every_kind_load_again(call, tmp_path, ty, values):
    path = write(tmp_path, "copy.atlas", COPY.format(ty=ty, size=Type[ty].size_bytes))
    saved, run = tmp_path / "s.npy", ["atlas", "run", path, "--block", 2, "--param", "y=zeros:2"]
    first = call(*run, "--param", f"x={values}", "--save", f"y={saved}")[1]
    code, again, err = call(*run, "--param", f"x=@{saved}")
    assert (code, err) == (0, "")
    assert rows(first) == rows(again)


def test_wider_floats_are_rounded_and_that_is_told(call, tmp_path):
    np.save(tmp_path / "x.npy", np.array([0.1, 0.5, np.nan, np.inf]))
    path = write(tmp_path, "copy.atlas", COPY.format(ty="F32", size=4))
    run = ["atlas", "run", path, "--block", 4, "--param", f"x=@{tmp_path / 'x.npy'}", "--param", "y=zeros:4"]
    code, out, err = call(*run)
    assert code == 0
    assert rows(out)["y"] == ["F32", "4", "0.1", "0.5", "nan", "inf"]
    assert one_line(err).startswith("note: 1 values of")
    np.save(tmp_path / "x.npy", np.array([1e300] * 4))
    code, _, err = call(*run)
    assert code == 2
    assert "does not fit F32" in one_line(err)


def test_booleans_and_integers_from_a_file(call, tmp_path):
    np.save(tmp_path / "b.npy", np.array([True, False, True, True]))
    np.save(tmp_path / "i.npy", np.array([1, 2, 3, 300]))
    np.save(tmp_path / "big.npy", np.array([1, 2, 3, 4], ">i4"))
    assert copied(call, tmp_path, "U8", f"@{tmp_path / 'b.npy'}") == ["1", "0", "1", "1"]
    assert copied(call, tmp_path, "U128", f"@{tmp_path / 'i.npy'}") == ["1", "2", "3", "300"]
    assert copied(call, tmp_path, "F32", f"@{tmp_path / 'i.npy'}") == ["1.0", "2.0", "3.0", "300.0"]
    assert copied(call, tmp_path, "I64", f"@{tmp_path / 'big.npy'}") == ["1", "2", "3", "4"]


@pytest.fixture
def bad_npy(tmp_path):
    with open(tmp_path / "pickle.npy", "wb") as stream:
        np.save(stream, np.array([object()], object), allow_pickle=True)
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "complex.npy", np.array([1j]))
    np.save(tmp_path / "float.npy", np.array([1.5]))
    np.save(tmp_path / "large.npy", np.array([300]))
    np.savez(tmp_path / "archive.npy.npz", a=np.zeros(1))
    write(tmp_path, "garbage.npy", b"not numpy at all")
    write(tmp_path, "empty.npy", b"")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    write(tmp_path, "huge.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("pickle.npy", "cannot read"),
        ("text.npy", "not numbers"),
        ("complex.npy", "not numbers"),
        ("float.npy", "holds float64, but the buffer holds U8"),
        ("large.npy", "does not fit U8"),
        ("archive.npy.npz", "cannot read"),
        ("garbage.npy", "cannot read"),
        ("empty.npy", "cannot read"),
        ("huge.npy", "cannot read"),
        ("nowhere.npy", "No such file"),
    ],
)
def test_npy_files_that_cannot_be_used(call, tmp_path, bad_npy, file, words):
    path = write(tmp_path, "copy.atlas", COPY.format(ty="U8", size=1))
    code, out, err = call("atlas", "run", path, "--param", f"x=@{bad_npy / file}", "--param", "y=zeros:1")
    assert (code, out) == (2, "")
    assert words in one_line(err)


def test_save_to_where_nothing_can_be_written(call, files, tmp_path):
    arguments = ["--lanes", "4", "--param", "a=1", "--param", "x=ones:4", "--param", "y=zeros"]
    code, _, err = call("atlas", "run", files["scale.atlas"], *arguments, "--save", f"y={tmp_path / 'no' / 'y.npy'}")
    assert code == 2
    assert "--save: cannot write" in one_line(err)


# --- arguments of run that make no sense ------------------------------------------------------------

GOOD = {"a": "1", "x": "ones:4", "y": "zeros:4"}


@pytest.mark.parametrize(
    ("changes", "more", "words"),
    [
        ({"x": None}, [], "the buffer x F32[] has no value: add --param x=VALUE"),
        ({"a": None}, [], "the scalar a F32 has no value"),
        ({"z": "1"}, [], "no parameter 'z'; its parameters: a, x, y"),
        ({}, ["--param", "a=1"], "'a' is given twice"),
        ({}, ["--param", "nonsense"], "expected NAME=VALUE"),
        ({}, ["--param", "=3"], "expected NAME=VALUE"),
        ({"a": "two"}, [], "--param a: 'two' is not a number"),
        ({"a": "1,2"}, [], "'1,2' is not a number"),
        ({"a": "1e39"}, [], "1e39 does not fit F32"),
        ({"a": "9" * 500}, [], "does not fit F32"),
        ({"x": "1,,2"}, [], "'' is not a number"),
        ({"x": "zeros:many"}, [], "expected zeros:N, not 'zeros:many'"),
        ({"x": "zeros:1:2"}, [], "expected zeros:N"),
        ({"x": "random:1:2:3"}, [], "expected random:N[:SEED]"),
        ({"x": "zeros"}, [], "how many?"),
        ({"x": "zeros:999999999999"}, [], "over the limit"),
        ({"x": "pool:16"}, [], "is not a number"),
        ({}, ["--save", "z=z.npy"], "no buffer 'z'; its buffers: x, y"),
        ({}, ["--save", "a=a.npy"], "no buffer 'a'"),
        ({}, ["--save", "y"], "expected NAME=FILE.npy"),
        ({}, ["--backend", "abacus"], "there is no backend 'abacus'"),
        ({}, ["--lanes", "4", "--grid", "2"], "exclude each other"),
        ({}, ["--lanes", "4", "--block", "2,2"], "one dimension"),
        ({}, ["--block", "2000"], "at most 1024 lanes"),
        ({}, ["--shared", "99999999999"], "shared memory"),
    ],
)
def test_run_with_arguments_that_make_no_sense(call, files, changes, more, words):
    given = [f"--param={name}={value}" for name, value in {**GOOD, **changes}.items() if value is not None]
    code, out, err = call("atlas", "run", files["scale.atlas"], *given, *more)
    assert (code, out) == (2, "")
    assert words in one_line(err)
    assert err.startswith("eshkol atlas run: ")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1.5", "'1.5' is not an integer"),
        ("300", "300 does not fit U8"),
        ("-1", "-1 does not fit U8"),
        ("0xzz", "is not an integer"),
        ("arange:300", "does not fit U8"),
        ("9" * 5000, "is not an integer"),
    ],
)
def test_integers_that_do_not_fit(call, tmp_path, value, words):
    path = write(tmp_path, "copy.atlas", COPY.format(ty="U8", size=1))
    code, _, err = call("atlas", "run", path, "--param", f"x={value}", "--param", "y=zeros:1")
    assert code == 2
    assert words in one_line(err)


def test_a_buffer_that_is_too_small_is_the_programs_fault(call, files):
    code, _, err = call("atlas", "run", files["scale.atlas"], "--param", "a=1", "--param", "x=1", "--param", "y=1,2")
    assert code == 1
    assert "needs 4 × F32" in err


def test_a_run_that_fails_shows_lane_and_line(call, files):
    arguments = ["--lanes", "4", "--param", "a=1", "--param", "x=1,2", "--param", "y=zeros"]
    code, out, err = call("atlas", "run", files["scale.atlas"], *arguments)
    assert (code, out) == (1, "")
    assert "address out of range" in err
    assert "scale.atlas:6:5" in err
    assert "^~~" in err
    assert "hint:" in err


def test_launches(call, tmp_path):
    text = ".buffer y U32 1\nMOV_IMM.U32 r0, 1\nATOM.U32.Add r1, [y], r0\n"
    path = write(tmp_path, "count.atlas", text)

    def lanes(*arguments: object) -> str:
        return rows(call("atlas", "run", path, "--param", "y=zeros", *arguments)[1])["y"][2]

    assert lanes() == "1"
    assert lanes("--lanes", 300) == "512"  # whole blocks of 256
    assert lanes("--lanes", 300, "--block", 100) == "300"
    assert lanes("--grid", "3,2", "--block", "2,2,2") == "48"
    assert lanes("--grid", "5") == "5"
    assert lanes("--block", "7") == "7"
    assert "(grid 3×2×1 of blocks 2×2×2)" in call(
        "atlas", "run", path, "--param", "y=zeros", "--grid", "3,2", "--block", "2,2,2")[1]  # fmt: skip


def test_shared_memory_is_asked_for_by_its_option(call, tmp_path):
    path = write(tmp_path, "s.atlas", "MOV_IMM.U32 r0, 1\nSTS.U32 [shared+8], r0\n")
    code, _, err = call("atlas", "run", path)
    assert code == 1
    assert "hint: launch with --shared BYTES, at least 12" in err
    assert call("atlas", "run", path, "--shared", 12)[0] == 0


def test_summaries_show_what_reads_back():
    assert cli_values.summarize(np.array([], np.float32), Type.F32) == "(empty)"
    assert cli_values.summarize(np.array([1 / 3], np.float32), Type.F32) == "0.33333334"


# --- real processes ---------------------------------------------------------------------------------


def test_process_exit_codes_and_streams(tmp_path):
    done = run_process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"eshkol {__version__}\n", "")
    done = run_process("atlas", "check", "-", "--format", "atlas", stdin="FROB\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    done = run_process("atlas", "check", "nowhere.atlas")
    assert (done.returncode, done.stdout) == (2, "")
    one_line(done.stderr)


def test_process_shows_a_traceback_only_when_asked():
    for arguments in (["atlas", "check", "nowhere.atlas"], ["atlas", "check", "-", "--format", "atlas"]):
        plain = run_process(*arguments, stdin="FROB\n")
        debug = run_process(*arguments, stdin="FROB\n", ESHKOL_DEBUG="1")
        off = run_process(*arguments, stdin="FROB\n", ESHKOL_DEBUG="0")
        assert "Traceback" not in plain.stderr + off.stderr
        assert "Traceback" in debug.stderr
        assert plain.returncode == debug.returncode == off.returncode


def test_process_runs_a_program_from_standard_input():
    arguments = ["--lanes", "4", "--param", "a=2", "--param", "x=arange:4", "--param", "y=zeros"]
    done = run_process("atlas", "run", "-", "--format", "atlas", *arguments, stdin=SCALE)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done.stdout) == {"y": ["F32", "4", "0.0", "2.0", "4.0", "6.0"]}


@pytest.mark.skipif(os.name != "posix", reason="pipes and /dev/full are POSIX's")
@pytest.mark.parametrize("command", ["--help", "doctor"])
def test_process_whose_reader_has_gone_is_quiet(command):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "eshkol", command],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (141, b"")
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_process_on_a_full_disk_says_so():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "eshkol", "--help"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, one_line(done.stderr)) == (1, "error: No space left on device")


def test_process_in_a_terminal_of_few_characters():
    done = run_process("doctor", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "backend reference" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all file names are Unicode")
def test_process_shows_names_that_are_no_text(tmp_path):
    file = tmp_path / os.fsdecode(b"odd\xff.json")
    file.write_text('{"atlas": 1, "name": "a\\ud800", "code": [{"op": "EXIT"}]}')
    for command, shown in (("check", "odd?.json: ok"), ("run", "a? on reference")):
        done = run_process("atlas", command, str(file), PYTHONIOENCODING="utf-8")
        assert (done.returncode, done.stderr) == (0, "")
        assert shown in done.stdout


def test_a_cache_without_a_home(call, monkeypatch):
    import eshkol.support.store

    def homeless() -> None:
        raise CacheError("no folder for the program cache: no home")

    monkeypatch.setattr(eshkol.support.store, "default_directory", homeless)
    code, out, _ = call("doctor")
    assert code == 0
    assert "no folder for the program cache" in out
