"""Core forms to native code: optimized, closures decided, written as LLVM, kept in the cache and loaded."""

from eshkol.runtime.scheme_table import LIBRARY

PRIMITIVES = f"({' '.join(LIBRARY)})"  # the library that the runtime's primitives are cells of
