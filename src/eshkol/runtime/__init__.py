"""The native runtime (C11, under native/) and its bridge to Python: for now the thread pool.

Import from `eshkol.runtime.scheduler`; nothing is loaded before that.
"""
