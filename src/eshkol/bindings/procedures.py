"""The procedure of each row of the op table: in a form of its own, or called as rows usually are.

Comes in: the name of a row, `add`, or of a row that changes its first argument, `add!`. Goes out: the Python function
that Scheme calls: of `forms.py`, `network_forms.py` or `draws.py` where one of them has it, else made of the row
(`rows.py`).
"""

from __future__ import annotations

from functools import cache, wraps
from typing import Any

from eshkol.bindings import draws, forms, network_forms
from eshkol.bindings.rows import Function, applied, bind, dashed, drawn, replaced, shown
from eshkol.errors import DTypeError, TensorError
from eshkol.ops import TABLE
from eshkol.ops.row import Op
from eshkol.tensors.value import Tensor


@cache
def row(name: str) -> Function:
    """The function of a row, or with `!` at the end of its name, of the row in place."""
    plain = name.removesuffix("!")
    op = TABLE.get(plain)
    if op is None or not op.public:
        raise TensorError(f"there is no row '{plain}' in the op table")
    known = forms.FORMS | draws.FORMS | network_forms.FORMS
    form = known.get(name) or known.get(plain)
    function = _checked(op, form) if form is not None else drawn(op) if op.random else applied(op)
    if plain != name and name not in known:
        function = in_place(plain, function)
    return described(function, op, name)


def _checked(op: Op, form: Function) -> Function:
    """A form that says in Scheme's words which arguments do not fit it."""
    signature = forms.signature_of(form)
    if signature is None:
        return form

    @wraps(form)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return form(*args, **given)
        except TypeError:
            bind(op, signature, args, given)
            raise

    return call


def described(function: Function, op: Op, name: str) -> Function:
    """The function with the row's name and documentation."""
    if function.__doc__ is None or function.__name__ != name:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = function.__doc__ or op.doc
    return function


def in_place(name: str, function: Function) -> Function:
    """The row, with its result put into its first argument, which it gives back."""

    def change(*args: Any, **given: Any) -> Any:
        target = args[0] if args else None
        if not isinstance(target, Tensor):
            raise DTypeError(f"a tensor is wanted as argument 1, to be changed in place, not {shown(target)}")
        result = function(*args, **given)
        return replaced(target, result, f"the result of {dashed(name)}")

    return change
