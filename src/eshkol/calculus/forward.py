"""Tangents."""

from eshkol.calculus.cfg import prepared, shape
from eshkol.calculus.emit import Module, Writer
from eshkol.calculus.ir import Program
from eshkol.calculus.sweep import Plain


def primal(program: Program) -> Module:
    """The module of a program as it is."""
    program = prepared(program)
    names = {f: f"f{k}" for k, f in enumerate(program.functions)}
    module = Module()
    for function in program.functions:
        is_main = function is program.main
        Plain(Writer(module, 1), shape(function), names, is_main).write("main" if is_main else names[function])
    return module
