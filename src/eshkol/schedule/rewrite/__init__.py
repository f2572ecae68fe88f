"""Passes over graphs: results of a function come in as nodes, and equivalent nodes that cost less go out.

`simplify.py` applies rules, and `trim.py` to loops; `rules.py` is the rules' table, which `algebra.py`, `movements.py`
and `rounds.py` fill. `patterns.py` recognizes what array instructions do at once; `decompose.py` takes apart what is
better computed in parts.
"""
