"""Every instruction of Atlas and every row of the op table on a machine: `python -m eshkol.conformance cuda`.

`instructions.py` has each instruction on each type against the reference machine; `samples.py` draws what rows of the
op table say they are tested with, and `checks.py` computes a sample on a machine and compares it with the interpreter
of the graph; `outcomes.py` says what a comparison came to, `__main__.py` goes over everything. Stands on top of tensors
and backends; nothing imports it but tests.
"""
