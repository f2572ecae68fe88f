"""Every instruction of Atlas and every row of the op table on machines: `eshkol conformance`.

`instructions.py` has each instruction on each type against the reference machine; `samples.py` draws what rows of the
op table say they are tested with, and `checks.py` computes a sample on a machine and compares it with the interpreter
of the graph; `outcomes.py` says what a comparison came to. `runs.py` goes over everything, in one process or several,
`results.py` is what came of it and its files, `page.py` shows it, `command.py` is the command line. Stands on top of
tensors and backends; only the command and tests import it.
"""
