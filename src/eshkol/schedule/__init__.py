"""Graphs into few kernels over planned memory, and running them: the compiler between tensors and machines.

`pipeline.py` lists the passes: over graphs (`rewrite/`), to kernels (`kernels/`), over plans (`plan/`). `run/` has what
computes: graphs and plans on the machines where their values are. `check/` compares all of it with the interpreter.
"""
