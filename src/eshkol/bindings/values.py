"""Values of Scheme that Python has no type of its own for, for those who import them: see runtime/values.py."""

from __future__ import annotations

from eshkol.runtime.values import Char, Keyword, Opaque, Pair, Procedure, Record, RecordType, Symbol, Values, Vector

__all__ = ["Char", "Keyword", "Opaque", "Pair", "Procedure", "Record", "RecordType", "Symbol", "Values", "Vector"]
