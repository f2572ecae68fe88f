"""Programs ahead of time: a program and the libraries that it reaches as one native file that needs no Python.

`whole` makes one unit of all modules and drops what nothing reaches, `text` writes it as LLVM text, `places` the tables
by which errors name lines, `library` what a C library of Scheme code exports, `runtime` has the C runtime compiled,
and `build` puts all of it together.
"""
