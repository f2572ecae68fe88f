"""Transformers: encoder and decoder layers with the norm before or after each part, stacks of them, and both together.

Parts and parameters have PyTorch's names, so that states carry over; masks mean what they mean in
`MultiheadAttention`: True where NOT to attend, or floats to be added.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from eshkol.errors import ShapeError, TensorError
from eshkol.nn import init
from eshkol.nn.attention import MultiheadAttention
from eshkol.nn.containers import ModuleList
from eshkol.nn.layers import Dropout, Linear, positive
from eshkol.nn.making import claim
from eshkol.nn.module import Module
from eshkol.nn.norms import LayerNorm
from eshkol.tensors import api as ek

Activation = str | Callable[[Any], Any]


def _activation(given: Activation, who: str) -> Callable[[Any], Any]:
    """A function of `ek` by its name, or the user's own."""
    if callable(given):
        return given
    if given in ("relu", "gelu", "silu", "tanh", "sigmoid", "elu", "selu", "mish"):
        found: Callable[[Any], Any] = getattr(ek, given)
        return found
    raise TensorError(
        f"{who}: activation is a name like 'relu' or 'gelu', or a function, not {given!r}", span=ek.here()
    )


class _Layer(Module):
    """What encoder and decoder layers share: a network of two linear layers, and paths around each part."""

    _crosses: ClassVar[bool] = False  # whether it attends to what an encoder gave, too

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.activation, self.norm_first = _activation(activation, type(self).__name__), norm_first
        attention = partial(
            MultiheadAttention, d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
        )
        self.self_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        for n in (1, 2, 3) if self._crosses else (1, 2):
            self.add_module(f"norm{n}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
            self.add_module(f"dropout{n}", Dropout(dropout))
        if self._crosses:
            self.multihead_attn = attention()

    def _around(self, x: Any, number: int, part: Callable[[Any], Any]) -> Any:
        """x and what a part makes of it, with the norm of that number in front of the part or after the sum."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))

    def _network(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a network of two layers, each beside a path around it and with a layer norm.

    >>> nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, norm_first=True)(x)
    """

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        def attended(x: Any) -> Any:
            return self.self_attn(
                x, x, x, key_padding_mask=src_key_padding_mask, need_weights=False, attn_mask=src_mask,
                is_causal=is_causal,
            )[0]  # fmt: skip

        return self._around(self._around(src, 1, attended), 2, self._network)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to what an encoder gave, and a network of two layers, each with a path around it.

    >>> nn.TransformerDecoderLayer(64, 4, batch_first=True)(target, memory, tgt_is_causal=True)
    """

    _crosses = True

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        def attended(x: Any) -> Any:
            return self.self_attn(
                x, x, x, key_padding_mask=tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )[0]  # fmt: skip

        def crossed(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, key_padding_mask=memory_key_padding_mask, need_weights=False, attn_mask=memory_mask,
                is_causal=memory_is_causal,
            )[0]  # fmt: skip

        return self._around(self._around(self._around(tgt, 1, attended), 2, crossed), 3, self._network)


def _copies(layer: Module, count: int, who: str) -> ModuleList:
    if not isinstance(layer, Module):
        raise TensorError(f"{who} takes a layer to copy, not {layer!r}", span=ek.here())
    positive(who, num_layers=count)
    tensors = [*layer.parameters(), *layer.buffers()]
    claim(count * sum(tensor.nbytes for tensor in tensors), count * len(tensors))
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after another, and a norm after the last if one is given.

    >>> nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), num_layers=2)(x)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers, "TransformerEncoder")
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after another, and a norm after the last if one is given.

    >>> nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4), num_layers=2)(target, memory)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers, "TransformerDecoder")
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Any, memory: Any, **masks: Any) -> Any:
        """Masks are those of `TransformerDecoderLayer`, by their names."""
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, **masks)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of a source, and a decoder of a target that attends to what the encoder gave.

    Positions are not encoded here: add `nn.PositionalEncoding` to what goes in.

    >>> nn.Transformer(64, 4, 2, 2, 256, batch_first=True)(source, target, tgt_is_causal=True)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        how = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            dtype,
        )
        norms = [LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2)]
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*how), num_encoder_layers, norms[0])
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*how), num_decoder_layers, norms[1])
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for tensor in self.parameters():
            if tensor.ndim > 1:
                init.xavier_uniform_(tensor)

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer takes {self.d_model} features; the source has shape {list(src.shape)}, the target "
                f"{list(tgt.shape)}", span=ek.here(),
            )  # fmt: skip
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(size: int, dtype: Any = None) -> Any:
        """The causal mask as floats to be added: -inf where a key comes later than the query."""
        later = ek.arange(size)[:, None] < ek.arange(size)
        return ek.cast(ek.where(later, -math.inf, 0.0), dtype)
