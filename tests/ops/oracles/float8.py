"""Oracles of floats of 8 bits: another library's, which reads and rounds them as its own dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from oracles.registry import Call, given, oracle

KINDS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def _read(x: Any, kind: str) -> Any:
    return np.asarray(x).astype(np.uint8).view(KINDS[kind]).astype(np.float64)


def _wanted(call: Call) -> str:
    return str(call.given.get("dtype") or "float32")


@oracle("to_float8", dtype=given("uint8"))
def _to_float8(x: Any, format: str = "e4m3") -> Any:
    greatest = float(ml_dtypes.finfo(KINDS[format]).max)
    return np.clip(np.asarray(x, np.float32), -greatest, greatest).astype(KINDS[format]).view(np.uint8)


@oracle("from_float8", dtype=given("float32"))
def _from_float8(x: Any, format: str = "e4m3") -> Any:
    return _read(x, format)


@oracle("float8_matmul", dtype=_wanted)
def _float8_matmul(
    x: Any, y: Any, scale: Any = 1.0, formats: tuple[str, str] = ("e4m3", "e4m3"), dtype: Any = "float32"
) -> Any:
    return np.einsum("...k,nk->...n", _read(x, formats[0]), _read(y, formats[1])) * scale
