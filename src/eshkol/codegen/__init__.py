"""Core forms to native code: optimized, closures decided, written as LLVM, kept in the cache and loaded."""

PRIMITIVES = "(eshkol primitives)"  # the library that the runtime's primitives are cells of
