"""GPT: a decoder of tokens alone, as GPT-2's, and text that it goes on with.

Blocks have the norm in front; parameters begin as GPT-2's do. `generate` keeps the keys and values of what was seen: a
prompt is read by one compiled call over the whole window, and each further token by another over one place. Neither is
traced again for another prompt, count, temperature or key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.nn import init, precision
from eshkol.nn.attention import Cache, MultiheadAttention
from eshkol.nn.containers import ModuleList
from eshkol.nn.layers import Dropout, Embedding, Linear, positive
from eshkol.nn.module import Module
from eshkol.nn.norms import LayerNorm
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors.holding import bare, standing_for
from eshkol.tensors.jit import jit
from eshkol.tensors.value import Tensor


@dataclass(frozen=True)
class GPTConfig:
    """The size of a GPT: how many tokens it knows, how many it sees, how deep and how wide it is."""

    vocabulary: int = 50257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    dropout: float = 0.0
    bias: bool = True
    tied: bool = True  # the embedding of tokens is the last layer too

    def __post_init__(self) -> None:
        counts = ("vocabulary", "context", "layers", "heads", "width")
        positive("GPTConfig", **{name: getattr(self, name) for name in counts})
        if self.width % self.heads:
            raise ShapeError(f"GPTConfig: a width of {self.width} is not {self.heads} heads", span=ek.here())


class GPTBlock(Module):
    """Attention to what came before and a network four times as wide, each behind a norm and with a path around it."""

    def __init__(self, config: GPTConfig, dtype: Any = None) -> None:
        super().__init__()
        width, bias = config.width, config.bias
        self.norm1 = LayerNorm(width, bias=bias, dtype=dtype)
        self.attention = MultiheadAttention(
            width, config.heads, dropout=config.dropout, bias=bias, batch_first=True, dtype=dtype
        )
        self.norm2 = LayerNorm(width, bias=bias, dtype=dtype)
        self.up = Linear(width, 4 * width, bias=bias, dtype=dtype)
        self.down = Linear(4 * width, width, bias=bias, dtype=dtype)
        self.dropout = Dropout(config.dropout)

    def _network(self, x: Any) -> Any:
        return self.dropout(self.down(ek.gelu(self.up(self.norm2(x)), approximate="tanh")))

    def forward(self, x: Any) -> Any:
        inner = self.norm1(x)
        x = x + self.dropout(self.attention(inner, inner, inner, need_weights=False, is_causal=True)[0])
        return x + self._network(x)

    def extend(self, x: Any, cache: Cache, position: Any) -> tuple[Any, Cache]:
        """The same for further places, the first at `position`, after those that the cache holds; and the cache."""
        attended, cache = self.attention.extend(self.norm1(x), cache, position)
        x = x + attended
        return x + self._network(x), cache


class GPT(Module):
    """A language model: ids of tokens (batch × length) in, logits of those that follow (batch × length × vocabulary).

    >>> model = nn.GPT(nn.GPTConfig(vocabulary=96, context=64, layers=4, heads=4, width=128))
    >>> loss = ek.cross_entropy(model(ids).reshape(-1, 96), following.reshape(-1))
    >>> model.generate(ids, 20, temperature=0.8, top_k=40)
    """

    def __init__(self, config: GPTConfig | None = None, dtype: Any = None, **sizes: Any) -> None:
        super().__init__()
        config = GPTConfig(**({} if config is None else asdict(config)) | sizes)
        self.config = config
        self.tokens = Embedding(config.vocabulary, config.width, dtype=dtype)
        self.positions = Embedding(config.context, config.width, dtype=dtype)
        self.dropout = Dropout(config.dropout)
        self.blocks = ModuleList([GPTBlock(config, dtype) for _ in range(config.layers)])
        self.norm = LayerNorm(config.width, bias=config.bias, dtype=dtype)
        self.head = None if config.tied else Linear(config.width, config.vocabulary, bias=False, dtype=dtype)
        self._begin()

    def _begin(self) -> None:
        """Give parameters the values that GPT-2 begins with."""
        shorter = 0.02 / math.sqrt(2 * self.config.layers)  # of what is added to the path around the parts
        for name, tensor in self.named_parameters():
            if tensor.ndim > 1:
                added = name.endswith(("out_proj.weight", "down.weight"))
                init.normal_(tensor, 0.0, shorter if added else 0.02)
            elif name.endswith("bias"):
                init.zeros_(tensor)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in asdict(self.config).items())

    # --- calls --------------------------------------------------------------------------------------------------------

    def forward(self, ids: Any) -> Any:
        """The logits of the token that follows each."""
        ids = self._checked(ids)
        x = self.dropout(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self._logits(x)

    def extend(self, ids: Any, caches: Sequence[Cache], position: Any) -> tuple[Any, list[Cache]]:
        """The logits of the token that follows each of further places, and the caches with them.

        The first of them is at `position`, after those that the caches hold: `empty_caches(batch)` hold none.
        """
        ids = self._checked(ids)
        given = [Cache(*cache) for cache in caches]
        x, after = self._extended(ids, given, ek.arange(ids.shape[1]) + position, position)
        return self._logits(x), after

    def empty_caches(self, batch: int) -> list[Cache]:
        """Room for the keys and values of as many places as the model sees, for each block."""
        return [block.attention.empty_cache(batch, self.config.context) for block in self.blocks]

    def _logits(self, x: Any) -> Any:
        x = self.norm(x)
        if self.head is not None:
            return self.head(x)
        return ek.linear(*precision.lowered(x, self.tokens.weight))

    def _checked(self, ids: Any) -> Any:
        ids = ek.asarray(ids)
        if not ids.dtype.is_integer:
            raise DTypeError(f"GPT takes ids of tokens, which are integers, not {ids.dtype}", span=ek.here())
        if ids.ndim != 2:
            raise ShapeError(f"GPT takes batch × length ids, not {list(ids.shape)}", span=ek.here())
        if ids.shape[1] > self.config.context:
            raise ShapeError(
                f"GPT sees {self.config.context} tokens, and was given {ids.shape[1]}", span=ek.here(),
                hint="give the last ones: ids[:, -context:]",
            )  # fmt: skip
        return ids

    # --- generation ---------------------------------------------------------------------------------------------------

    def generate(
        self, ids: Any, count: int, temperature: float = 1.0, top_k: int | None = None, rng: Any = None
    ) -> Any:
        """The ids with `count` further ones, each drawn by the logits that the model gives after those before.

        Temperature 0 takes the most likely one always; `top_k` draws among so many of the likeliest. `rng` is a key
        (`ek.random.key(0)`); without it, everybody's generator is used. Dropout is off. Beyond the context the model
        sees the last tokens, all of them anew each time.
        """
        ids = ek.asarray(ids)
        single = ids.ndim == 1
        self._may_generate(ids, count, temperature, top_k)
        key = ek.asarray(ek.random.next_key() if rng is None else rng).to(next(self.parameters()).device)
        context, length = self.config.context, ids.shape[-1]
        rows = 1 if single else ids.shape[0]
        found = np.zeros((rows, length + count), np.int32)  # not a tensor: its lengths would each be compiled
        found[:, :length] = given = ids.numpy()
        if not ((given >= 0) & (given < self.config.vocabulary)).all():
            raise TensorError(f"generate: ids are from 0 to {self.config.vocabulary - 1}", span=ek.here())
        with self._as_it_stands() as state:
            read, read_one = self._compiled()
            how = (float(temperature), top_k if temperature else 1, precision.current())
            token = place = cache = None
            for at in range(length, length + count):
                if token is None or at > context:  # read what is in the window
                    known = min(at, context)
                    window = np.zeros((rows, context), np.int32)
                    window[:, :known] = found[:, at - known : at]
                    token, place, cache, key = read(state, window, np.array(known), key, *how)
                else:
                    token, place, cache, key = read_one(state, token, place, key, cache, *how)
                found[:, at : at + 1] = token.numpy()
        return ek.tensor(found[0] if single else found)

    def _may_generate(self, ids: Any, count: Any, temperature: Any, top_k: Any) -> None:
        if not ids.dtype.is_integer or ids.ndim not in (1, 2) or ids.shape[-1] == 0:
            raise ShapeError(
                f"generate goes on with ids, (batch ×) length integers and at least one, not {ids.dtype}"
                f"{list(ids.shape)}", span=ek.here(),
            )  # fmt: skip
        if not is_whole(count, 0):
            raise TensorError(f"generate: count is how many tokens to make, not {count!r}", span=ek.here())
        if not temperature >= 0 or not math.isfinite(temperature):
            raise TensorError(f"generate: temperature is a number from 0 on, not {temperature!r}", span=ek.here())
        if top_k is not None and not 1 <= top_k <= self.config.vocabulary:
            raise TensorError(
                f"generate: top_k is from 1 to the {self.config.vocabulary} of the vocabulary, not {top_k!r}",
                span=ek.here(),
            )

    @contextmanager
    def _as_it_stands(self) -> Iterator[list[Tensor]]:
        """Its parameters as plain values; meanwhile it is set to evaluation, and no derivatives are remembered."""
        modes = [(module, module.training) for module in self.modules()]
        self.eval()
        try:
            with ek.no_grad():
                yield [bare(tensor) for tensor in self.parameters()]
        finally:
            for module, mode in modes:
                object.__setattr__(module, "training", mode)

    def _compiled(self) -> tuple[jit, jit]:
        """What reads a window, and what reads one token more, both compiled when they are first called."""
        found: tuple[jit, jit] | None = self.__dict__.get("_generating")
        if found is None:
            found = jit(self._read, floats=True), jit(self._read_one, floats=True, donate=4)
            object.__setattr__(self, "_generating", found)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """What copies and files hold: compiled code is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_generating"}

    def _read(self, state: Sequence[Tensor], ids: Any, known: Any, key: Any, *how: Any) -> Any:
        """The token after the `known` first ones of a window, its place, the caches, and the next key."""
        with self._standing_for(state):
            batch, context = ids.shape
            x, caches = self._extended(ids, self.empty_caches(batch), ek.arange(context), 0)
            last = ek.take(x, ek.reshape(known - 1, (1,)), axis=1)
            token, key = self._drawn(self._logits(last), key, *how)
        return token, known, caches, key

    def _read_one(
        self, state: Sequence[Tensor], token: Any, place: Any, key: Any, caches: list[Cache], *how: Any
    ) -> Any:
        """The token after one that stands at a place after those that the caches hold, and the same as above."""
        with self._standing_for(state):
            x, caches = self._extended(token, caches, ek.reshape(place, (1,)), place)
            token, key = self._drawn(self._logits(x), key, *how)
        return token, place + 1, caches, key

    @contextmanager
    def _standing_for(self, state: Sequence[Tensor]) -> Iterator[None]:
        with standing_for(list(self.parameters()), state):
            yield

    def _extended(self, ids: Any, caches: list[Cache], places: Any, first: Any) -> tuple[Any, list[Cache]]:
        x = self.tokens(ids) + ek.take(self.positions.weight, places, axis=0)
        after = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block.extend(x, cache, first)
            after.append(cache)
        return x, after

    def _drawn(self, logits: Any, key: Any, temperature: Any, top_k: int | None, precise: Any) -> tuple[Any, Any]:
        """A token for each example of batch × 1 × vocabulary logits, and the next key."""
        logits = ek.cast(logits[:, 0], "float32")
        keys = ek.split_key(key)
        if top_k == 1:
            found = ek.argmax(logits, -1)
        else:
            logits = logits / temperature
            if top_k is not None:
                logits = ek.where(logits < ek.topk(logits, top_k)[0][:, -1:], -math.inf, logits)
            found = ek.categorical(keys[0], logits)
        return ek.cast(found[:, None], "int32"), keys[1]
