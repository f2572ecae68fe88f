"""Tokenizers and blocks of tokens."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eshkol import data as ed
from eshkol.data.tokenizers import WORDS, _joined_long
from eshkol.errors import DataError, IndexOutOfRange

SOME = ed.text()[:6000]
BPE = ed.BPETokenizer.train(SOME, 400, special=["<end>"])


@given(st.binary(max_size=200))
@settings(max_examples=60)
def test_any_bytes_come_back(data) -> None:
    assert b"".join(WORDS.findall(data)) == data
    for tokenizer in (ed.ByteTokenizer(), BPE):
        tokens = tokenizer.encode(data)
        assert tokens.dtype == np.int64
        assert tokenizer.decode_bytes(tokens) == data


def test_any_text_comes_back() -> None:
    text = "naïve 日本語 🙂\t\tx  y\r\n  it's 12,345.67 \x00 _a_"
    for tokenizer in (ed.ByteTokenizer(), BPE, ed.CharTokenizer.train(text)):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.decode(tokenizer.encode("")) == ""
    assert BPE.decode(BPE.encode(SOME)) == SOME
    assert len(BPE.encode(SOME)) < 0.65 * len(SOME)


def naive(text: bytes, count: int) -> list[tuple[int, int]]:
    """Byte-pair encoding, word for word as it is defined."""
    words = [list(w) for w in WORDS.findall(text)]
    merges: list[tuple[int, int]] = []
    while len(merges) < count:
        pairs = Counter(p for w in words for p in pairwise(w))
        if not pairs or max(pairs.values()) < 2:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        for w in words:
            k = 0
            while k < len(w) - 1:
                if (w[k], w[k + 1]) == best:
                    w[k : k + 2] = [256 + len(merges)]
                k += 1
        merges.append(best)
    return merges


@given(st.text("aab b\n1", max_size=120))
@settings(max_examples=40)
def test_pairs_are_learned_as_they_are_defined(text) -> None:
    assert ed.BPETokenizer.train(text, 256 + 12).merges == naive(text.encode(), 12)


def test_pairs_of_a_real_text() -> None:
    assert BPE.merges[:40] == naive(SOME.encode(), 40)
    assert BPE.size == 400
    assert BPE.special == {"<end>": 399}
    assert BPE.decode([BPE.special["<end>"]]) == "<end>"
    assert ed.BPETokenizer.train("aaaaaaa", 300).merges == naive(b"aaaaaaa", 44)


@given(st.text("abc", min_size=1, max_size=90))
@settings(max_examples=30)
def test_long_words_are_encoded_as_short_ones(word) -> None:
    tokenizer = ed.BPETokenizer.train("abcab bcabc aabb cabcabcabc abcabcab", 275)
    short = list(word.encode())
    while True:
        ranked = [(tokenizer._ranks[p], p) for p in pairwise(short) if p in tokenizer._ranks]
        if not ranked:
            break
        rank, pair = min(ranked)
        k = 0
        while k < len(short) - 1:
            if (short[k], short[k + 1]) == pair:
                short[k : k + 2] = [256 + rank]
            k += 1
    assert _joined_long(list(word.encode()), tokenizer._ranks) == short
    assert tokenizer.encode(word).tolist() == short


def test_tokenizers_are_saved_and_loaded(tmp_path) -> None:
    for tokenizer in (ed.ByteTokenizer(), ed.CharTokenizer.train(SOME), BPE):
        tokenizer.save(tmp_path / "t.json")
        again = ed.load_tokenizer(tmp_path / "t.json")
        assert type(again) is type(tokenizer)
        np.testing.assert_array_equal(again.encode(SOME), tokenizer.encode(SOME))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(tokenizer)).encode(SOME), tokenizer.encode(SOME))
        assert again.size == tokenizer.size == len(tokenizer)


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        ("nothing", "no file of a tokenizer"),
        ("[]", "no tokenizer"),
        ({"version": 2}, "version 2"),
        ({"kind": "word"}, "kind is one of"),
        ({"kind": "bpe"}, "no file of a tokenizer"),
        ({"kind": "bpe", "merges": [[300, 1]], "special": []}, "come after it"),
        ({"kind": "bpe", "merges": [[1, 1], [1, 1]], "special": []}, "twice"),
        ({"kind": "bpe", "merges": [[97, 97], *([256 + k] * 2 for k in range(40))], "special": []}, "65,536"),
        ({"kind": "char", "characters": ["ab"]}, "takes characters"),
        ({"kind": "char", "characters": ["a", "a"]}, "twice"),
    ],
)
def test_files_of_no_tokenizer_are_refused(tmp_path, saved, words) -> None:
    head = {"format": "eshkol-tokenizer", "version": 1}
    (tmp_path / "t").write_text(saved if isinstance(saved, str) else json.dumps({**head, **saved}))
    with pytest.raises(DataError, match=words):
        ed.load_tokenizer(tmp_path / "t")


def test_misuse_of_tokenizers_is_told() -> None:
    with pytest.raises(DataError, match=r"'z' \(number 2 of the text\)"):
        ed.CharTokenizer.train("ab").encode("abz")
    with pytest.raises(IndexOutOfRange, match="token 400 is out of range"):
        BPE.decode([400])
    with pytest.raises(DataError, match="integers"):
        BPE.decode([0.5])
    with pytest.raises(DataError, match="do not hold 256 bytes"):
        ed.BPETokenizer.train("a", 100)
    wrong: Any = 3
    with pytest.raises(DataError, match="text or bytes"):
        BPE.encode(wrong)


def test_blocks() -> None:
    data = ed.BlockDataset(np.arange(11, dtype=np.uint16), 3)
    assert len(data) == 3
    x, y = data[2]
    assert x.tolist() == [6, 7, 8]
    assert y.tolist() == [7, 8, 9]
    every = ed.BlockDataset(np.arange(11), 3, stride=1)
    assert len(every) == 8
    assert every[-1][1].tolist() == [8, 9, 10]
    ((x, y),) = ed.DataLoader(every, 8)
    assert x[:, 0].tolist() == list(range(8))
    assert (y - x).tolist() == [[1] * 3] * 8
    for tokens, block in ((np.arange(3), 3), (np.ones(9), 2), (np.arange(9), 0)):
        with pytest.raises(DataError, match="BlockDataset"):
            ed.BlockDataset(tokens, block)
    assert [len(p) for p in ed.split_tokens(np.arange(10), 0.8)] == [8, 2]


def test_files_of_text(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text(SOME, "utf-8")
    assert ed.load_text(path, BPE, 8)[0][0].tolist() == BPE.encode(SOME)[:8].tolist()
    monkeypatch.setattr("eshkol.data.blocks._CHUNK", 100)
    tokens = ed.tokenize_file(path, BPE, tmp_path / "a.npy")
    assert isinstance(tokens, np.memmap)
    assert tokens.dtype == np.uint16
    assert BPE.decode(tokens) == SOME
    data = pickle.loads(pickle.dumps(ed.BlockDataset(tokens, 8)))
    assert data[3][0].tolist() == tokens[24:32].tolist()
    path.write_bytes(b"abc" * 50 + b"\xff")
    with pytest.raises(DataError, match="no UTF-8 near byte 150"):
        ed.tokenize_file(path, BPE, tmp_path / "b.npy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "a.txt"]  # nothing half is left
