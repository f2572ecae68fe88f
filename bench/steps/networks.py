"""The networks, written once for both libraries: `nn` is torch.nn or ek.nn, `words` holds functions under common names.

Each gives logits, examples × classes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bench.steps.models import (
    CHANNELS,
    CLASSES,
    CONTEXT,
    DIM,
    EMBEDDED,
    HEADS,
    HIDDEN,
    LAYERS,
    SIDE,
    SIZES,
    VOCABULARY,
    WIDE,
)


def networks(nn: Any, words: Any) -> dict[str, Any]:
    """For each network its class. `words` has relu, gelu, max_pool2d and causal attention."""
    module: Any = nn.Module

    class MLP(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(n, m) for n, m in pairwise(SIZES)])

        def forward(self, x: Any) -> Any:
            *inner, last = self.layers
            for layer in inner:
                x = words.relu(layer(x))
            return last(x)

    class CNN(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList([nn.Conv2d(n, m, 3, padding=1) for n, m in pairwise(CHANNELS)])
            self.wide = nn.Linear(CHANNELS[-1] * (SIDE // 4) ** 2, WIDE)
            self.head = nn.Linear(WIDE, CLASSES)

        def forward(self, x: Any) -> Any:
            for conv in self.convs:
                x = words.max_pool2d(words.relu(conv(x)), 2)
            return self.head(words.relu(self.wide(x.reshape(x.shape[0], -1))))

    class LSTM(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(VOCABULARY, EMBEDDED)
            self.lstm = nn.LSTM(EMBEDDED, HIDDEN, batch_first=True)
            self.head = nn.Linear(HIDDEN, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.table(tokens))[0]).reshape(-1, VOCABULARY)

    class Block(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
            self.inward, self.outward = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
            self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.inward(self.norm(x)).reshape(batch, length, 3, HEADS, DIM // HEADS)
            query, key, value = (parts[:, :, n].swapaxes(1, 2) for n in range(3))
            mixed = words.attention(query, key, value).swapaxes(1, 2).reshape(batch, length, DIM)
            x = x + self.outward(mixed)
            return x + self.down(words.gelu(self.up(self.norm2(x))))

    class GPT(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, DIM), nn.Embedding(CONTEXT, DIM)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions.weight
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)).reshape(-1, VOCABULARY)

    return {"mlp": MLP, "cnn": CNN, "lstm": LSTM, "gpt": GPT}
