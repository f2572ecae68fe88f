"""Atlas to LLVM, shared by the backends whose machine LLVM knows.

`emitter.py` writes LLVM text, `scalars.py` says what each register instruction is in it, `lanes.py` turns a
program into the code of one lane, `kernels.py` puts lanes into loops, and `compile.py` makes machine code.
"""
