"""The one thing pyproject.toml cannot say: how the native runtime is compiled."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).resolve().parent))

from build_support import compiler


class BuildNative(build_ext):
    """Builds a plain shared library where setuptools would build a Python module."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"  # no tag of a Python version

    def build_extension(self, ext: Extension) -> None:
        compiler.build(Path(self.get_ext_fullpath(ext.name)).resolve())


class NativeWheel(bdist_wheel):
    """The library depends on the platform, not on the version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            compiler.LIBRARY,
            sources=[str(path) for path in compiler.SOURCES],
            depends=[
                *(str(path) for path in compiler.HEADERS),
                *(f"build_support/{name}.py" for name in ("__init__", "backend", "compiler")),
            ],
        )
    ],
    cmdclass={"build_ext": BuildNative, "bdist_wheel": NativeWheel},
)
