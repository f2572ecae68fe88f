"""The code of one lane as LLVM text, shared by the backends whose machine LLVM knows.

Comes in: a program's analysis. Goes out: functions and what they refer to; the loops or threads that run them are a
backend's own. `emitter.py` writes LLVM with Atlas' types, `scalars.py`, `convert.py` and `wide.py` say what each
register instruction is in it, `state.py`, `memory.py` and `writer.py` make the function of a lane, `module.py` has what
stands beside it. `layout.py` is the record that a kernel is given, `ranges.py` and `amounts.py` find out what registers
can hold. Stands on `atlas` and `eshkol/llvm`.
"""
