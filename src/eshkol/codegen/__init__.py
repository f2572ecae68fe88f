"""Core forms to native code: optimized, closures decided, written as LLVM, kept in the cache and loaded."""
