"""SPIR-V of kernels that were written as C: the compiler that drivers of Vulkan do not have.

Comes in: the text of a kernel (`backends/text`) in the C that its writer and helpers use, with OpenCL's names. Goes
out: a module of SPIR-V 1.5. `syntax.py` has the tokens, `types.py` the types, `module.py` the parts of a module,
`unit.py` what its functions have in common, `code.py` the instructions of a function, `memory.py` what it loads and
stores, `compiler.py` the statements and expressions. No tool and no package is needed.
"""

from eshkol.backends.spirv.compiler import COMPILER, compile_kernel
from eshkol.backends.spirv.unit import Options, shared_bits

__all__ = ["COMPILER", "Options", "compile_kernel", "shared_bits"]
