"""The methods of `Tensor` that follow from the op table, as editors and type checkers see them.

At run time this class is empty: `functions.py` puts the methods on `Tensor` when the table is full. Their types stand
in methods.pyi, which `make generate` writes (`cli/stubs.py`).
"""

from __future__ import annotations


class Methods:
    """Under `Tensor`, before its operators; what it has is known to type checkers alone."""

    __slots__ = ()
