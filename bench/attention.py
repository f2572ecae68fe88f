"""Attention as tensors compute it, beside PyTorch and JAX, causal and not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import Result, race

TITLE = "attention"
SHAPES = ((1, 8, 2048, 64), (1, 8, 512, 64), (4, 8, 1024, 128))  # batch, heads, seq_len, head_dim


def run() -> list[Result]:
    return [_race(shape, causal) for shape in SHAPES for causal in (True, False)]


def _race(shape: tuple[int, int, int, int], causal: bool) -> Result:
    batch, heads, seq_len, head_dim = shape
    arrays = [np.random.default_rng(k).standard_normal(shape).astype(np.float32) for k in range(3)]
    compiled = ek.jit(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, causal=causal))
    ours = [ek.tensor(a) for a in arrays]
    contestants: dict[str, Callable[[], object]] = {"eshkol": lambda: compiled(*ours).numpy()}
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensors = [torch.from_numpy(a) for a in arrays]
        contestants["PyTorch"] = partial(torch.nn.functional.scaled_dot_product_attention, *tensors, is_causal=causal)
    if jax:  # wants batch × seq_len × heads × head_dim
        turned = [np.ascontiguousarray(a.swapaxes(1, 2)) for a in arrays]
        contestants["JAX"] = peers.jitted(partial(jax.nn.dot_product_attention, is_causal=causal), *turned)
    pairs = seq_len * (seq_len + 1) // 2 if causal else seq_len**2  # of a query and a key
    name = f"{'×'.join(map(str, shape))} f32{', causal' if causal else ''}"
    return race(name, contestants, work=4.0 * batch * heads * pairs * head_dim, unit="FLOP")
