"""Programs as WebAssembly with vectors of 128 bits, run by wasmtime: no browser and no other machine is needed."""

from eshkol.backends.wasm.backend import WasmBackend

__all__ = ["WasmBackend"]
