"""Nodes into Atlas programs: which nodes share a kernel (`fuse.py`), and its code.

`lower.py` serves one node, `fused.py` a group: element by element (`elements.py`), row by row (`rows.py`) or in parts
(`parts.py`). The code itself is written with the emitter (`emit.py`). `products.py`, `takes.py`,
`fused_convolution.py` and `whole_convolutions.py` have the rows of ops that only compiled graphs contain.
"""
