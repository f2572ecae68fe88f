"""Graphs and plans at work.

`execute.py` computes graphs where their values are (`resident.py`, `memory.py`), `gradients.py` has the ways back of
graphs that come again; plans run as native sequences (`native.py`) or step by step (`stepwise.py`); `failures.py` says
what went wrong, with the user's line.
"""
