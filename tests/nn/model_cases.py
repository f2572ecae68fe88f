"""Models that are compared with PyTorch's: each written once, for both libraries, which have the same names.

`nn` is the library's; inputs and parameters are drawn from one generator, in float64. What PyTorch gives is kept in
references/models.npz, so that it need not be there: `python tests/nn/model_cases.py` writes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import eshkol as ek
from eshkol.graph import interpret
from eshkol.tensors.holding import standing_for

Array = np.ndarray
Shape = tuple[int, ...]
REFERENCES = Path(__file__).parent / "references" / "models.npz"


@dataclass(frozen=True)
class Case:
    """A model, the shapes of its inputs, constants such as masks, and what is computed of them."""

    name: str
    make: Callable[..., Any]  # (nn, dtype=)
    inputs: tuple[Shape, ...]
    call: Callable[..., Any]  # (model, *inputs, **constants)
    constants: Mapping[str, Array] = field(default_factory=dict)


CASES: list[Case] = []


def case(
    name: str, make: Callable[..., Any], *inputs: Shape, call: Callable[..., Any] | None = None, **constants: Array
) -> None:
    CASES.append(Case(name, make, inputs, call or (lambda m, *x, **given: m(*x, **given)), constants))


# --- recurrent --------------------------------------------------------------------------------------------------------

case("RNN", lambda nn, **how: nn.RNN(3, 4, 2, **how), (4, 2, 3))
case("RNN relu, states", lambda nn, **how: nn.RNN(3, 2, nonlinearity="relu", bias=False, **how), (3, 3), (1, 2))
case(
    "LSTM both ways", lambda nn, **how: nn.LSTM(3, 2, 2, bidirectional=True, batch_first=True, **how),
    (2, 4, 3), (4, 2, 2), (4, 2, 2), call=lambda m, x, h, c: m(x, (h, c)),
)  # fmt: skip
case("LSTM", lambda nn, **how: nn.LSTM(2, 3, **how), (5, 2, 2))
case("GRU both ways", lambda nn, **how: nn.GRU(3, 2, 2, bidirectional=True, **how), (4, 2, 3), (4, 2, 2))
case("GRU without bias", lambda nn, **how: nn.GRU(3, 4, bias=False, **how), (3, 3))
case("RNNCell", lambda nn, **how: nn.RNNCell(3, 4, nonlinearity="relu", **how), (2, 3), (2, 4))
case(
    "LSTMCell", lambda nn, **how: nn.LSTMCell(3, 4, **how), (2, 3), (2, 4), (2, 4),
    call=lambda m, x, h, c: m(x, (h, c)),
)  # fmt: skip
case("GRUCell", lambda nn, **how: nn.GRUCell(3, 4, **how), (2, 3), (2, 4))

# --- attention --------------------------------------------------------------------------------------------------------

PADDING = np.array([[False, False, False, True, True], [False] * 5])
LATER = np.triu(np.ones((4, 4), bool), 1)
SOME = np.array([[0.5, -np.inf, 0.25, 0.0, 1.0]] * 4)


def _heads(m: Any, *x: Any, **given: Any) -> Any:
    return m(*x, average_attn_weights=False, **given)


case("attention to itself", lambda nn, **how: nn.MultiheadAttention(6, 2, **how), (4, 2, 6),
     call=lambda m, x, **given: m(x, x, x, **given), attn_mask=LATER)  # fmt: skip
case("attention, padding", lambda nn, **how: nn.MultiheadAttention(4, 2, bias=False, batch_first=True, **how),
     (2, 4, 4), (2, 5, 4), call=lambda m, q, k, **given: _heads(m, q, k, k, **given),
     key_padding_mask=PADDING)  # fmt: skip
case("attention, added mask", lambda nn, **how: nn.MultiheadAttention(4, 2, kdim=3, vdim=2, **how),
     (4, 4), (5, 3), (5, 2), attn_mask=SOME)  # fmt: skip
case("attention, mask for each head", lambda nn, **how: nn.MultiheadAttention(4, 2, batch_first=True, **how),
     (2, 4, 4), (2, 4, 4), (2, 4, 4),
     attn_mask=np.stack([np.roll(np.eye(4, dtype=bool), n, 0) for n in range(4)]))  # fmt: skip

# --- transformers -----------------------------------------------------------------------------------------------------

case("encoder layer", lambda nn, **how: nn.TransformerEncoderLayer(4, 2, 6, 0.0, **how), (3, 2, 4))
case("encoder layer, norm first", lambda nn, **how: nn.TransformerEncoderLayer(
        4, 2, 6, 0.0, activation="gelu", norm_first=True, batch_first=True, **how),
     (2, 5, 4), src_key_padding_mask=PADDING)  # fmt: skip
case("decoder layer", lambda nn, **how: nn.TransformerDecoderLayer(4, 2, 6, 0.0, batch_first=True, **how),
     (2, 4, 4), (2, 5, 4), tgt_mask=LATER, memory_key_padding_mask=PADDING)  # fmt: skip
case("decoder layer, norm first", lambda nn, **how: nn.TransformerDecoderLayer(
        4, 2, 6, 0.0, norm_first=True, bias=False, **how), (3, 2, 4), (2, 2, 4))  # fmt: skip
case("encoder", lambda nn, **how: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True, **how), 2, nn.LayerNorm(4, **how)),
     (2, 5, 4), src_key_padding_mask=PADDING)  # fmt: skip
case("transformer", lambda nn, **how: nn.Transformer(4, 2, 1, 2, 6, 0.0, batch_first=True, **how),
     (2, 5, 4), (2, 4, 4), src_key_padding_mask=PADDING, tgt_mask=LATER)  # fmt: skip


# --- what is compared -------------------------------------------------------------------------------------------------


def flat(value: Any) -> list[Any]:
    """The tensors in a result."""
    return [y for x in value for y in flat(x)] if isinstance(value, tuple | list) else [value]


def drawn(rng: np.random.Generator, shape: Shape) -> Array:
    """Numbers from -1 to 1."""
    return rng.random(shape) * 2 - 1


def values(case: Case, model: Any) -> tuple[dict[str, Array], list[Array], np.random.Generator]:
    """A state for the model and its inputs, and where further numbers come from; the same in both libraries."""
    rng = np.random.default_rng(sum(map(ord, case.name)))
    state = {name: drawn(rng, tuple(tensor.shape)) for name, tensor in sorted(model.state_dict().items())}
    return state, [drawn(rng, shape) for shape in case.inputs], rng


def in_torch(case: Case, dtype: str = "float64") -> dict[str, Array]:
    """Outputs and gradients that PyTorch gives, by name."""
    import torch

    kind = getattr(torch, dtype)
    model = case.make(torch.nn, dtype=kind)
    state, inputs, rng = values(case, model)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    given = [torch.tensor(x, dtype=kind, requires_grad=True) for x in inputs]
    constants = {
        name: torch.tensor(x) if x.dtype == bool else torch.tensor(x, dtype=kind) for name, x in case.constants.items()
    }
    outputs = flat(case.call(model, *given, **constants))
    loss = sum((y * torch.tensor(drawn(rng, tuple(y.shape)), dtype=kind)).sum() for y in outputs)
    assert isinstance(loss, torch.Tensor)
    loss.backward()
    found = {f"output {n}": y.detach().numpy() for n, y in enumerate(outputs)}
    found |= {f"input {n}": x.grad.numpy() for n, x in enumerate(given)}
    return found | {name: p.grad.numpy() for name, p in model.named_parameters()}


def _constants(case: Case, dtype: str) -> dict[str, Any]:
    return {n: ek.tensor(x) if x.dtype == bool else ek.tensor(x, dtype=dtype) for n, x in case.constants.items()}


def in_eshkol(case: Case, dtype: str = "float64") -> dict[str, Array]:
    """Outputs and gradients that we give, by the same names: compiled, and by `backward`."""
    model = case.make(ek.nn, dtype=dtype)
    state, inputs, rng = values(case, model)
    model.load_state_dict(state)
    given = [ek.tensor(x, dtype=dtype, requires_grad=True) for x in inputs]
    outputs = flat(case.call(model, *given, **_constants(case, dtype)))
    loss = sum((y * ek.tensor(drawn(rng, tuple(y.shape)), dtype=dtype)).sum() for y in outputs)
    assert isinstance(loss, ek.Tensor)
    loss.backward()
    found = {f"output {n}": y.detach().numpy() for n, y in enumerate(outputs)}
    for name, tensor in [*((f"input {n}", x) for n, x in enumerate(given)), *model.named_parameters()]:
        assert tensor.grad is not None, name
        found[name] = tensor.grad.numpy()
    return found


def interpreted(case: Case) -> dict[str, Array]:
    """The same in float64 by `vjp`, and by the references of rows, without compiling anything."""
    model = case.make(ek.nn, dtype="float64")
    state, inputs, rng = values(case, model)
    constants = _constants(case, "float64")

    def run(state: Any, inputs: Any) -> Any:
        with standing_for(list(model.parameters()), [state[name] for name, _ in model.named_parameters()]):
            return flat(case.call(model, *inputs, **constants))

    tensors = {name: ek.tensor(value) for name, value in state.items()}
    outputs, pull = ek.vjp(run, tensors, [ek.tensor(x) for x in inputs])
    for_state, for_inputs = pull([ek.tensor(drawn(rng, tuple(y.shape))) for y in outputs])
    found = {f"output {n}": y for n, y in enumerate(outputs)} | {f"input {n}": x for n, x in enumerate(for_inputs)}
    found |= for_state
    return dict(zip(found, interpret.evaluate([x._node for x in found.values()]), strict=True))


def assert_same(found: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: float) -> None:
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        scale = max(1.0, float(np.abs(value).max(initial=0.0)))
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance * scale, err_msg=name)


def joined(found: Mapping[str, Array]) -> Array:
    """All numbers of a case in one array, as they are kept: in the order of their names."""
    return np.concatenate([found[name].ravel() for name in sorted(found)])


if __name__ == "__main__":
    every = {case.name: joined(in_torch(case)) for case in CASES}
    REFERENCES.parent.mkdir(exist_ok=True)
    np.savez_compressed(REFERENCES, allow_pickle=False, **every)
    print(f"{REFERENCES}: {len(every)} arrays, {REFERENCES.stat().st_size} bytes")
