"""Atlas programs as native code of the CPU: `translate.py` turns a program into the text of one module.

`lane.py` has what the code of a lane (`backends/lanes`) looks like on a CPU, `loops.py` the loops over lanes with their
memory, `parallel.py`, `rare.py` and `uniform.py` what LLVM's vectorizer needs to make good of them, `macro.py` and
`macro_call.py` how array instructions become native functions. Machine code is made of the text by `eshkol/llvm`.
"""
