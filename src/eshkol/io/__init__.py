"""Files of tensors: checkpoints of training, .eskpt, and the formats of others (safetensors, NumPy, PyTorch).

import eshkol as ek

ek.io.save_checkpoint("run.eskpt", model, optimizer, step=1000)
ek.io.load_checkpoint("run.eskpt").restore(model, optimizer)
"""

from __future__ import annotations

from eshkol.io.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_state,
    load_tensors,
    save_checkpoint,
    save_state,
    save_tensors,
    state_of,
)
from eshkol.io.eskpt import Entry, TensorFile
from eshkol.io.npz import load_npz, save_npz
from eshkol.io.pytorch import load_pytorch
from eshkol.io.safetensors import load_safetensors, safetensors_metadata, save_safetensors
from eshkol.io.saving import AsyncSaver, CheckpointManager, DamagedCheckpoint, Kept

__all__ = [
    "AsyncSaver", "Checkpoint", "CheckpointManager", "DamagedCheckpoint", "Entry", "Kept", "TensorFile",
    "load_checkpoint", "load_npz", "load_pytorch", "load_safetensors", "load_state", "load_tensors",
    "safetensors_metadata", "save_checkpoint", "save_npz", "save_safetensors", "save_state", "save_tensors", "state_of",
]  # fmt: skip
