"""Kernels for Hopper's groups of four warps, which multiply matrices from shared memory, written as PTX.

Programs that consist of one array instruction are looked up here (`instructions.py`); whatever else is asked of a GPU
is code of lanes (`translate.py`).
"""
