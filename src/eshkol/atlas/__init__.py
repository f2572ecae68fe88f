"""Atlas: the one portable program form of Eshkol.

A small SIMT instruction set: `table/` states every instruction once; everything else here is derived from it
or serves it. This package imports nothing of the project but `eshkol.errors`.
"""
