"""Environment variables: one grammar, and errors that name the variable."""

from __future__ import annotations

import pytest

from eshkol.support import flags


@pytest.mark.parametrize(
    ("text", "means"),
    [("", None), (" ", None), ("1", True), ("yes", True), ("ON", True), ("true", True), ("0", False), ("off", False),
     ("No", False), (" false ", False)],
)  # fmt: skip
def test_switches(monkeypatch, text, means):
    monkeypatch.setenv("ESHKOL_DEBUG", text)
    assert flags.choice("ESHKOL_DEBUG") is means
    assert flags.is_on("ESHKOL_DEBUG") is bool(means)


@pytest.mark.parametrize("text", ["2", "maybe", "1 0", "-1"])
def test_a_switch_is_on_or_off(monkeypatch, text):
    monkeypatch.setenv("ESHKOL_CHECK", text)
    with pytest.raises(flags.FlagError, match=f"ESHKOL_CHECK is '{text}'") as caught:
        flags.is_on("ESHKOL_CHECK")
    assert "yes" in str(caught.value)


def test_a_variable_that_is_not_set_says_nothing(monkeypatch):
    for flag in flags.FLAGS:
        monkeypatch.delenv(flag.name, raising=False)
    assert not flags.dumps("fuse")
    assert flags.choice("ESHKOL_TUNE") is flags.number("ESHKOL_THREADS", 1, 9) is flags.size("ESHKOL_HEAP") is None
    assert flags.text("ESHKOL_DATA") == ""


@pytest.mark.parametrize(
    ("text", "asked"),
    [("fuse", {"fuse"}), ("fuse, plan", {"fuse", "plan"}), ("all", {"fuse", "plan", "lower"}), ("lower,", {"lower"})],
)
def test_passes_to_show(monkeypatch, text, asked):
    monkeypatch.setenv("ESHKOL_DUMP", text)
    assert {name for name in ("fuse", "plan", "lower") if flags.dumps(name)} == asked


def test_a_pass_that_there_is_not_is_named(monkeypatch):
    monkeypatch.setenv("ESHKOL_DUMP", "fusee")
    with pytest.raises(flags.FlagError, match="ESHKOL_DUMP has 'fusee', which is no pass") as caught:
        flags.dumps("fuse")
    assert "simplify" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("0", 0), ("100", 100), ("2k", 2048), ("512M", 512 << 20), ("1.5G", 3 << 29), ("1 GiB", 1 << 30), ("2gb", 2 << 30),
     ("", None), ("M", None), ("-1", None), ("1e9", None), ("9" * 30, None), ("1..5", None), ("1T1", None),
     ("999999999999T", None)],
)  # fmt: skip
def test_sizes(text, bytes_):
    assert flags.bytes_in(text) == bytes_


def test_errors_name_the_variable_and_what_it_may_be(monkeypatch):
    monkeypatch.setenv("ESHKOL_THREADS", "10")
    assert flags.number("ESHKOL_THREADS", 1, 10) == 10
    with pytest.raises(flags.FlagError, match="ESHKOL_THREADS is '10', but must be a whole number from 1 to 9"):
        flags.number("ESHKOL_THREADS", 1, 9)
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "much")
    with pytest.raises(flags.FlagError, match="ESHKOL_CACHE_BYTES is 'much', which is no size"):
        flags.size("ESHKOL_CACHE_BYTES")
