"""What tells a network where in a sequence an element stands: encodings that are added, and rotary ones.

Sequences are batch × length × features (without `batch_first`: length × batch × features).
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.nn import init
from eshkol.nn.layers import Dropout, features, positive
from eshkol.nn.module import Buffer, Module, Parameter
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


class PositionalEncoding(Module):
    """Adds to each element of a sequence what says its position: sinusoids, or with `learned` parameters.

    >>> nn.PositionalEncoding(64, max_len=512)(ek.zeros((2, 10, 64)))
    """

    weight: Tensor

    def __init__(
        self, dim: int, max_len: int = 5000, dropout: float = 0.0, learned: bool = False, batch_first: bool = True,
        base: float = 10000.0, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        positive("PositionalEncoding", dim=dim, max_len=max_len)
        self.dim, self.max_len, self.learned, self.batch_first = dim, max_len, learned, batch_first
        self.dropout = Dropout(dropout)
        if learned:
            self.weight = Parameter(init.normal((max_len, dim), std=0.02, dtype=dtype))
        else:
            self.register_buffer("weight", Buffer(ek.positional_encoding(max_len, dim, base, dtype)), False)

    def forward(self, x: Any, offset: int = 0) -> Any:
        features("PositionalEncoding", x, self.dim, "dim")
        if x.ndim < 2:
            raise ShapeError(f"PositionalEncoding takes a sequence, not shape {list(x.shape)}", span=ek.here())
        axis = -2 if self.batch_first or x.ndim == 2 else -3
        length = x.shape[axis]
        if offset < 0 or offset + length > self.max_len:
            raise ShapeError(
                f"PositionalEncoding knows {self.max_len} positions, and was asked for {offset} to {offset + length}",
                span=ek.here(), hint="make it with a greater max_len",
            )  # fmt: skip
        places = ek.cast(self.weight[offset : offset + length], x.dtype)
        return self.dropout(x + (places if axis == -2 else ek.unsqueeze(places, 1)))

    def extra_repr(self) -> str:
        return f"{self.dim}, max_len={self.max_len}, learned={self.learned}"


class RotaryEmbedding(Module):
    """Turns pairs of features of queries and keys (… × length × dim) by angles that grow with the position (RoPE)."""

    angles: Tensor

    def __init__(
        self, dim: int, max_len: int = 2048, base: float = 10000.0, interleaved: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        positive("RotaryEmbedding", dim=dim, max_len=max_len)
        if dim % 2:
            raise TensorError(f"RotaryEmbedding turns pairs, and dim is {dim}", span=ek.here())
        self.dim, self.max_len, self.base, self.interleaved = dim, max_len, base, interleaved
        self.register_buffer("angles", Buffer(ek.rotary_angles(max_len, dim, base, dtype=dtype)), False)

    def forward(self, x: Any, offset: int = 0) -> Any:
        features("RotaryEmbedding", x, self.dim, "dim")
        length = x.shape[-2] if x.ndim > 1 else 1
        if offset < 0 or offset + length > self.max_len:
            raise ShapeError(
                f"RotaryEmbedding knows {self.max_len} positions, and was asked for {offset} to {offset + length}",
                span=ek.here(), hint="make it with a greater max_len",
            )  # fmt: skip
        angles = self.angles[offset : offset + length]
        return ek.rotary_embedding(x, angles if x.ndim > 1 else angles[0], self.interleaved)

    def extra_repr(self) -> str:
        return f"{self.dim}, max_len={self.max_len}, base={self.base:g}"
