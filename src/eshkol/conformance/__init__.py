"""Every row of the op table on a machine, against the interpreter of the graph: `python -m eshkol.conformance cuda`.

`samples.py` draws what rows say they are tested with, `checks.py` computes a sample on a machine and compares,
`__main__.py` goes over the table. Stands on top of tensors and backends; nothing imports it but tests.
"""
