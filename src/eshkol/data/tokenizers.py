"""Tokenizers: text as numbers and back, by bytes, by characters, or by pairs that occur often (byte-level BPE).

Byte and BPE tokenizers take any bytes whatever and give them back. All are saved as JSON, and `load_tokenizer` reads
what a tokenizer saved.
"""

from __future__ import annotations

import heapq
import json
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.errors import DataError, IndexOutOfRange

BYTES = 256
# Words with the space before them, numbers, signs, and white space: BPE joins nothing across them. Bytes from 128 on
# are letters of other alphabets in UTF-8. Every byte belongs to one of these.
WORDS = re.compile(rb" ?[A-Za-z\x80-\xff]+| ?[0-9]+| ?[^\sA-Za-z0-9\x80-\xff]+|\s+(?!\S)|\s+")


class Tokenizer(ABC):
    """Text as token numbers, and back."""

    kind: str
    takes_bytes = True  # whatever they are; else the bytes must be UTF-8

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tokens there are."""

    @abstractmethod
    def encode(self, text: str | bytes) -> Any:
        """The tokens of a text, an array of int64."""

    @abstractmethod
    def decode_bytes(self, tokens: Any) -> bytes:
        """The bytes that tokens stand for."""

    @abstractmethod
    def _saved(self) -> dict[str, Any]:
        """What JSON says of it."""

    def __len__(self) -> int:
        return self.size

    def decode(self, tokens: Any) -> str:
        """The text that tokens stand for; bytes that are no UTF-8, as a model may write them, become the sign �."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def save(self, path: Any) -> None:
        """Write the tokenizer to a file of JSON."""
        text = json.dumps({"format": "eshkol-tokenizer", "version": 1, "kind": self.kind, **self._saved()})
        Path(path).write_text(text, "utf-8")

    def _checked(self, tokens: Any) -> list[int]:
        plain = np.asarray(tokens.numpy() if hasattr(tokens, "_node") else tokens).reshape(-1)
        if plain.size == 0:
            return []
        if plain.dtype.kind not in "iu":
            raise DataError(f"tokens are integers, not {plain.dtype}")
        wrong = (plain < 0) | (plain >= self.size)
        if wrong.any():
            raise IndexOutOfRange(f"token {plain[wrong][0]} is out of range: there are {self.size}")
        found: list[int] = plain.tolist()
        return found


def _as_bytes(text: Any) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes | bytearray | memoryview):
        return bytes(text)
    raise DataError(f"a tokenizer takes text or bytes, not a {type(text).__name__}")


class ByteTokenizer(Tokenizer):
    """Each byte of UTF-8 is a token: 256 of them."""

    kind = "byte"

    @property
    def size(self) -> int:
        return BYTES

    def encode(self, text: str | bytes) -> Any:
        return np.frombuffer(_as_bytes(text), np.uint8).astype(np.int64)

    def decode_bytes(self, tokens: Any) -> bytes:
        return bytes(self._checked(tokens))

    def _saved(self) -> dict[str, Any]:
        return {}


class CharTokenizer(Tokenizer):
    """Each character of a text is a token: `CharTokenizer.train(text)`."""

    kind = "char"
    takes_bytes = False

    def __init__(self, characters: Iterable[str]) -> None:
        self.characters = list(characters)
        if not self.characters or any(not isinstance(c, str) or len(c) != 1 for c in self.characters):
            raise DataError("CharTokenizer takes characters, at least one")
        if len(set(self.characters)) < len(self.characters):
            raise DataError("CharTokenizer: a character is there twice")
        self._numbers = {c: k for k, c in enumerate(self.characters)}

    @classmethod
    def train(cls, text: str) -> CharTokenizer:
        """A tokenizer of the characters that occur, in their order."""
        return cls(sorted(set(text)))

    @property
    def size(self) -> int:
        return len(self.characters)

    def encode(self, text: str | bytes) -> Any:
        try:
            plain = text if isinstance(text, str) else _as_bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"no UTF-8 at byte {error.start}: {error.reason}") from None
        try:
            return np.fromiter((self._numbers[c] for c in plain), np.int64, len(plain))
        except KeyError as error:
            raise DataError(
                f"the character {error.args[0]!r} (number {plain.index(error.args[0])} of the text) is none of the "
                f"{self.size} of this tokenizer", hint="train it on all of the text, or use a ByteTokenizer"
            ) from None  # fmt: skip

    def decode_bytes(self, tokens: Any) -> bytes:
        return "".join(self.characters[k] for k in self._checked(tokens)).encode("utf-8", "surrogatepass")

    def _saved(self) -> dict[str, Any]:
        return {"characters": self.characters}


class BPETokenizer(Tokenizer):
    """Pairs of tokens that occur often are tokens themselves: `BPETokenizer.train(text, 1000)`.

    Tokens 0 to 255 are bytes, then come pairs in the order in which they were joined, then special tokens, which no
    text is encoded to: `tokenizer.special["<end>"]` is the number of one.
    """

    kind = "bpe"

    def __init__(self, merges: Sequence[tuple[int, int]], special: Sequence[str] = ()) -> None:
        self.merges = [(int(a), int(b)) for a, b in merges]
        self._bytes: list[bytes] = [bytes([k]) for k in range(BYTES)]
        for number, (a, b) in enumerate(self.merges):
            if not (0 <= a < BYTES + number and 0 <= b < BYTES + number):
                raise DataError(f"pair {number} of a BPE tokenizer, ({a}, {b}), names tokens that come after it")
            self._bytes.append(self._bytes[a] + self._bytes[b])
            if len(self._bytes[-1]) > 1 << 16:
                raise DataError(f"pair {number} of a BPE tokenizer stands for more than 65,536 bytes")
        if len(set(self.merges)) < len(self.merges) or len(set(special)) < len(special):
            raise DataError("a BPE tokenizer has a pair or a special token twice")
        self.special = {name: len(self._bytes) + k for k, name in enumerate(special)}
        self._bytes += [name.encode("utf-8") for name in special]
        self._ranks = {pair: k for k, pair in enumerate(self.merges)}
        self._word = lru_cache(1 << 16)(self._joined)

    @classmethod
    def train(cls, text: str | bytes, size: int, special: Sequence[str] = ()) -> BPETokenizer:
        """A tokenizer of at most so many tokens: pairs are joined that occur most often in the text.

        Of pairs that occur equally often the one with the smaller numbers comes first; none that occurs once is joined.
        """
        if size < BYTES + len(special):
            raise DataError(
                f"BPETokenizer.train: {size} tokens do not hold {BYTES} bytes and {len(special)} special ones"
            )
        counts = Counter(WORDS.findall(_as_bytes(text)))
        return cls(_learned(counts, size - BYTES - len(special)), special)

    @property
    def size(self) -> int:
        return len(self._bytes)

    def encode(self, text: str | bytes) -> Any:
        word = self._word
        return np.array([t for w in WORDS.findall(_as_bytes(text)) for t in word(w)], np.int64)

    def _joined(self, word: bytes) -> tuple[int, ...]:
        """The tokens of a word: of the pairs in it the earliest learned is joined, again and again."""
        tokens = list(word)
        if len(tokens) > 64:
            return tuple(_joined_long(tokens, self._ranks))
        while len(tokens) > 1:
            best = min(pairwise(tokens), key=lambda pair: self._ranks.get(pair, 1 << 60))
            rank = self._ranks.get(best)
            if rank is None:
                break
            tokens = _replaced(tokens, best, BYTES + rank)
        return tuple(tokens)

    def decode_bytes(self, tokens: Any) -> bytes:
        return b"".join(self._bytes[k] for k in self._checked(tokens))

    def _saved(self) -> dict[str, Any]:
        return {"merges": self.merges, "special": list(self.special)}

    def __getstate__(self) -> Any:
        return self.merges, list(self.special)

    def __setstate__(self, state: Any) -> None:
        BPETokenizer.__init__(self, *state)


def _replaced(tokens: Sequence[int], pair: tuple[int, int], new: int) -> list[int]:
    found, k, last = [], 0, len(tokens) - 1
    while k <= last:
        if k < last and tokens[k] == pair[0] and tokens[k + 1] == pair[1]:
            found.append(new)
            k += 2
        else:
            found.append(tokens[k])
            k += 1
    return found


def _joined_long(tokens: list[int], ranks: dict[tuple[int, int], int]) -> list[int]:
    """The same as `_joined` for long words, in n log n: a heap of pairs over a linked list."""
    after = [*range(1, len(tokens)), -1]
    before = [-1, *range(len(tokens) - 1)]
    heap = [(ranks[p], k) for k, p in enumerate(pairwise(tokens)) if p in ranks]
    heapq.heapify(heap)
    gone = [False] * len(tokens)
    while heap:
        rank, k = heapq.heappop(heap)
        other = after[k] if not gone[k] else -1
        if other < 0 or ranks.get((tokens[k], tokens[other])) != rank:
            continue
        tokens[k], gone[other] = BYTES + rank, True
        after[k] = after[other]
        if after[k] >= 0:
            before[after[k]] = k
        for left in (before[k], k):
            right = after[left] if left >= 0 else -1
            if right >= 0 and (pair := (tokens[left], tokens[right])) in ranks:
                heapq.heappush(heap, (ranks[pair], left))
    return [t for t, g in zip(tokens, gone, strict=True) if not g]


def _learned(counts: Counter[bytes], most: int) -> list[tuple[int, int]]:
    """The pairs to join, in order. Counts of pairs are kept up to date word by word; a heap finds the greatest."""
    words = [list(w) for w in sorted(counts)]
    often = [counts[w] for w in sorted(counts)]
    totals: Counter[tuple[int, int]] = Counter()
    places: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for k, word in enumerate(words):
        for pair in pairwise(word):
            totals[pair] += often[k]
            places[pair].add(k)
    heap = [(-n, pair) for pair, n in totals.items()]
    heapq.heapify(heap)
    merges: list[tuple[int, int]] = []
    while heap and len(merges) < most:
        count, pair = heapq.heappop(heap)
        if totals[pair] != -count:
            continue  # counted anew since: its true count is in the heap as well
        if -count < 2:
            break
        new = BYTES + len(merges)
        merges.append(pair)
        changed: set[tuple[int, int]] = set()
        for k in places.pop(pair):
            old, word = words[k], _replaced(words[k], pair, new)
            for p in pairwise(old):
                totals[p] -= often[k]
                changed.add(p)
            for p in pairwise(word):
                totals[p] += often[k]
                places[p].add(k)
                changed.add(p)
            words[k] = word
        del totals[pair]
        for p in changed - {pair}:
            if totals[p] > 0:
                heapq.heappush(heap, (-totals[p], p))
    return merges


def load_tokenizer(path: Any) -> Tokenizer:
    """The tokenizer that was saved to a file."""
    where = files.existing(path, "load_tokenizer")
    try:
        with files.told(where):
            found = json.loads(where.read_bytes())
        if not isinstance(found, dict) or found.get("format") != "eshkol-tokenizer":
            raise DataError("no tokenizer was saved in it")
        if found.get("version") != 1:
            raise DataError(f"version {found.get('version')} of tokenizers is not known")
        match files.chosen("load_tokenizer", "kind", found.get("kind"), ("byte", "char", "bpe")):
            case "byte":
                return ByteTokenizer()
            case "char":
                return CharTokenizer(found["characters"])
            case _:
                return BPETokenizer(found["merges"], found["special"])
    except DataError as error:
        raise DataError(f"{where}: {error.message}", hint=error.hint) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{where}: no file of a tokenizer: {type(error).__name__}: {error}") from None
