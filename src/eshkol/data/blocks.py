"""Text for language models: tokens in a row, cut into blocks, each with the tokens that come next."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.arrays import load_npy
from eshkol.data.dataset import ArrayDataset, Dataset, checked_index
from eshkol.data.draws import Pass
from eshkol.data.structure import array_of
from eshkol.data.tokenizers import Tokenizer
from eshkol.errors import DataError

_CHUNK = 1 << 22


class BlockDataset(Dataset):
    """Blocks of a long row of tokens: samples (tokens, the tokens one further on), `block` of each.

    Blocks begin every `stride` tokens; without one they do not overlap. `stride=1` gives all there are.
    """

    def __init__(self, tokens: Any, block: int, stride: int | None = None) -> None:
        self.block, self.stride = block, block if stride is None else stride
        if block < 1 or self.stride < 1:
            raise DataError(f"BlockDataset: block and stride are numbers of tokens, not {block} and {stride}")
        self._row = ArrayDataset(tokens)  # which knows how a mapped file goes to another process
        plain = self.tokens
        if plain.ndim != 1 or plain.dtype.kind not in "iu":
            raise DataError(f"BlockDataset takes a row of token numbers, not {list(plain.shape)} of {plain.dtype}")
        if len(plain) <= block:
            raise DataError(f"BlockDataset: {len(plain)} tokens are too few for a block of {block} and the next token")

    @property
    def tokens(self) -> Any:
        """The row of tokens."""
        assert isinstance(self._row.arrays, tuple)
        return self._row.arrays[0]

    def __len__(self) -> int:
        return (len(self.tokens) - self.block - 1) // self.stride + 1

    def __getitem__(self, index: int) -> Any:
        start = checked_index(index, len(self)) * self.stride
        piece = np.asarray(self.tokens[start : start + self.block + 1]).astype(np.int64)
        return piece[:-1], piece[1:]

    def take(self, indices: Any, at: Pass) -> Any:
        places = (np.asarray(indices) * self.stride)[:, None] + np.arange(self.block + 1)
        pieces = np.asarray(self.tokens[places]).astype(np.int64)
        return np.ascontiguousarray(pieces[:, :-1]), np.ascontiguousarray(pieces[:, 1:])

    @property
    def whole(self) -> bool:
        return True

    def told(self) -> str:
        return f"int64[{self.block}], int64[{self.block}]"


def load_text(
    path: Any, tokenizer: Tokenizer, block: int, stride: int | None = None, *, on_error: str = "raise"
) -> BlockDataset:
    """A file of text (UTF-8, gzip or not) as blocks of tokens.

    With `on_error="skip"` bytes that are no UTF-8 are left out where the tokenizer needs characters, and so is what
    comes after the damage of a compressed file.
    """
    where, skips = files.existing(path, "load_text"), files.Skips("load_text", on_error)
    data = bytes(files.read_all(where, skips))
    if not data:
        raise DataError(f"{where}: the file is empty")
    text = data if tokenizer.takes_bytes else _decoded(data, where, skips)
    skips.tell(f"places of {where} are no text and were")
    try:
        return BlockDataset(tokenizer.encode(text), block, stride)
    except DataError as error:
        raise DataError(f"{where}: {error.message}", hint=error.hint) from None


def _decoded(data: bytes, where: Path, skips: files.Skips) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        skips.met(f"{where}, byte {error.start}", f"no UTF-8: {error.reason}")
        return data.decode("utf-8", "ignore")


def tokenize_file(path: Any, tokenizer: Tokenizer, out: Any) -> Any:
    """The tokens of a text file written to a .npy file, piece by piece, and mapped: for text larger than memory.

    >>> tokens = ek.data.tokenize_file("big.txt", tokenizer, "big.npy")
    >>> data = ek.data.BlockDataset(tokens, 256)
    """
    where, target = files.existing(path, "tokenize_file"), Path(out)
    files.is_gzip(where)  # whether it can be read, before anything is written
    dtype = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
    handle, name = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    try:
        count = 0
        with os.fdopen(handle, "wb") as file:
            header = _header(dtype, 0)
            file.write(header)
            for piece in _pieces(where):
                try:
                    tokens = tokenizer.encode(piece).astype(dtype)
                except DataError as error:
                    raise DataError(f"{where}: {error.message}", hint=error.hint) from None
                count += len(tokens)
                file.write(tokens.tobytes())
            file.seek(0)
            file.write(_header(dtype, count))
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return load_npy(target)


def _header(dtype: Any, count: int) -> bytes:
    """The header of a .npy file, as long for every count."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin1")


def _pieces(path: Path) -> Iterator[str | bytes]:
    """The text in pieces that end where a line does, so that no word is cut; a long line is cut by characters."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with files.opened(path) as file:
        rest, at = "", 0
        while chunk := file.read(_CHUNK):
            try:
                text = rest + decoder.decode(chunk)
            except UnicodeDecodeError as error:
                raise DataError(f"{path}: no UTF-8 near byte {at + error.start}: {error.reason}") from None
            at += len(chunk)
            end = text.rfind("\n") + 1 or len(text)
            rest = text[end:]
            yield text[:end]
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: the text ends within a character: {error.reason}") from None
        if rest:
            yield rest


def split_tokens(tokens: Any, share: float = 0.9) -> tuple[Any, Any]:
    """The first tokens, by their share, and the rest: for training and for validation."""
    plain = array_of(tokens)
    end = round(len(plain) * share)
    if not 0 < end < len(plain):
        raise DataError(f"split_tokens: a share of {share} of {len(plain)} tokens leaves nothing in one part")
    return plain[:end], plain[end:]
