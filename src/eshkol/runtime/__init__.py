"""The native runtime (C11, under native/) and its bridge to Python.

The thread pool is in `scheduler`, the runtime of the language in `scheme`; whoever imports one loads the library.
"""
