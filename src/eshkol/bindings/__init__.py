"""Scheme and Python side by side: `ek.eval` and its kin, and what Scheme programs reach of Python.

This package is light: each module is imported when it is asked for (`evaluate` by `ek.eval`), since most programs of
one language use nothing of the other.
"""
