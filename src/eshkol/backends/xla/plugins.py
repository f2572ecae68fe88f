"""Which devices of PJRT there are besides the processor: those of plugins that other packages bring.

Comes in: what is installed. Goes out: a `Plugin` for each shared library of a vendor, found where JAX finds it: in
packages below `jax_plugins` (`jax-cuda13-pjrt`, `jax-rocm60-pjrt`, others of vendors), and `libtpu`. Nothing of JAX or
of a vendor is imported. `client.py` loads a plugin when one of its devices is asked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# NVIDIA's libraries that its plugin opens by name only: the packages `nvidia-*` have them where no linker looks.
_VENDOR = ("cudart", "nvrtc", "cublas", "cublasLt", "nccl", "cupti", "nvJitLink", "cusparse", "cusolver", "cufft",
           "nvshmem_host", "cudnn")  # fmt: skip
_GPU: Mapping[str, Any] = {"allocator": "bfc", "preallocate": False}  # else the first client takes 3/4 of the memory


@dataclass(frozen=True)
class Plugin:
    """A vendor's library with devices of PJRT."""

    name: str  # as PJRT is told
    library: Path
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def load_what_it_needs(self) -> None:
        """Load NVIDIA's libraries where they came as packages; a system's own are found by the plugin itself."""
        if self.name != "cuda":
            return
        for library in _VENDOR:
            for place in _below("nvidia", f"*/lib/lib{library}.so.*"):
                with suppress(OSError):  # of another release, say: the plugin tells what it misses
                    ctypes.CDLL(str(place), mode=ctypes.RTLD_GLOBAL)


def plugins() -> list[Plugin]:
    """All that are installed, by name."""
    found = {plugin.name: plugin for plugin in _installed()}
    return [found[name] for name in sorted(found)]


def _installed() -> Iterator[Plugin]:
    for library in _below("jax_plugins", "*/*.so"):
        kind = library.parent.name.removeprefix("xla_").rstrip("0123456789")
        if library.stem.endswith("plugin"):
            options = {"platform_name": kind, **_GPU} if kind in ("cuda", "rocm") else {}
            yield Plugin(kind, library, options)
    for library in _below("libtpu", "libtpu.so"):
        yield Plugin("tpu", library)


def _below(package: str, pattern: str) -> Iterator[Path]:
    """Files of a package that is installed, also of one that several installations share."""
    spec = find_spec(package)
    for folder in () if spec is None else spec.submodule_search_locations or ():
        yield from sorted(Path(folder).glob(pattern))
