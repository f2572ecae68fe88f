"""The code of one lane as structured C-like text, for machines whose drivers compile source.

Comes in: a program's analysis. Goes out: a kernel's text with what the host must know to launch it. `scalars.py` has
the one table of what register instructions are, `wide.py` integers of more than 64 bits, `lane.py` a lane's registers
and how it fails, `memory.py` what it reads and writes, `writer.py` control flow and the kernel. What languages differ
in (names of types, spaces of memory, barriers, atomics) is a `Dialect`, of which each backend has its own. Stands on
`atlas` and, for what registers can hold, on `lanes`.
"""
