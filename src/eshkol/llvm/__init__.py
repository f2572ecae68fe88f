"""LLVM, once for everything that makes machine code: kernels of Atlas programs, Scheme code, derivatives.

Comes in: LLVM text, which the three of them write with `text.py`. Goes out: addresses of functions in memory.
`targets.py` says what machine code is made for, `passes.py` how much LLVM does to it, `objects.py` makes objects of it
(`builtins.py` has the functions that LLVM calls without being told to, `elf.py` reads and renames symbols),
`linking.py` and `loading.py` bring them into memory, and `identity.py` names machine and LLVM for whoever keeps what
was compiled.

Nothing outside this package imports llvmlite, and nothing here does before something has to be compiled: what the cache
holds is loaded without it.

It stands above the runtime, whose linker it loads with, and below the backends, `codegen` and `calculus`.
"""
