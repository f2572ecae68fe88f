"""Torus configurations, orbits, unit groups, the three-phase operation, the character table's file."""

from __future__ import annotations

import io
import math
import operator
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batches import of_each
from eshkol.atlas.torus import CHARACTERS, ORBITS, Torus, UnitGroup, load_character_table, orbit
from eshkol.atlas.types import Type
from eshkol.errors import IsaError

TABLE = {
    8: (24, 96),
    16: (48, 96),
    32: (96, 192),
    64: (192, 384),
    128: (384, 768),
    256: (768, 1536),
    512: (1536, 3072),
    1024: (3072, 6144),
    2048: (6144, 12288),
    4096: (12288, 24576),
}
tori = st.sampled_from([Torus.of_width(bits) for bits in TABLE])
integers = st.integers(-(1 << 80), 1 << 80)


@pytest.mark.parametrize(("bits", "expected"), TABLE.items())
def test_the_configuration_of_every_width(bits, expected):
    torus = Torus.of_width(bits)
    assert (torus.page, torus.residue) == expected
    assert torus.size == expected[0] * expected[1]


@pytest.mark.parametrize("bits", [0, 1, 4, 7, 9, 12, 24, 48, 4095, 8192, -8])
def test_other_widths_are_refused(bits):
    with pytest.raises(ValueError, match=f"no torus for a width of {bits} bits"):
        Torus.of_width(bits)


@of_each("ty", list(Type))
def test_the_configuration_of_a_type_is_that_of_its_width(ty):
    assert Torus.of_type(ty) == Torus.of_width(ty.bits)


# The three-phase operation


@pytest.mark.parametrize("bits", [8, 16])
def test_embed_and_lift_are_inverse_on_the_whole_torus(bits):
    torus = Torus.of_width(bits)
    places = set()
    for x in range(torus.size):
        place = torus.embed(x)
        assert torus.lift(place) == x
        places.add(place)
    assert places == {(page, residue) for page in range(torus.page) for residue in range(torus.residue)}


@given(tori, st.data())
def test_embed_and_lift_are_inverse_at_every_width(torus, data):
    x = data.draw(st.integers(0, torus.size - 1))
    page, residue = torus.embed(x)
    assert (page, residue) == (x // torus.residue % torus.page, x % torus.residue)
    assert 0 <= page < torus.page
    assert 0 <= residue < torus.residue
    assert torus.lift((page, residue)) == x


@given(tori, integers)
def test_embedding_is_modulo_the_size(torus, x):
    assert torus.embed(x) == torus.embed(x % torus.size)
    assert torus.lift(torus.embed(x)) == x % torus.size


@given(tori, integers, integers, st.sampled_from([operator.add, operator.sub, operator.mul]))
def test_operating_on_the_torus_is_modular_arithmetic(torus, x, y, operation):
    assert torus.operate(operation, x, y) == operation(x, y) % torus.size


@given(tori, integers, integers, integers)
def test_addition_on_the_torus_is_a_commutative_group(torus, x, y, z):
    def add(a: int, b: int) -> int:
        return torus.operate(operator.add, a, b)

    assert add(x, y) == add(y, x)
    assert add(add(x, y), z) == add(x, add(y, z))
    assert add(x, 0) == x % torus.size
    assert add(x, -x) == 0


def test_the_operation_sees_values_on_the_torus():
    torus = Torus(2, 3)
    seen = []
    assert torus.operate(lambda a, b: seen.append((a, b)) or 100, 7, -1) == 100 % 6
    assert seen == [(1, 5)]


# Orbits


def test_there_are_32_orbits():
    assert ORBITS == 32
    assert {orbit(x) for x in range(Torus.of_width(8).size)} == set(range(32))
    assert [orbit(x) for x in (0, 1, 31, 32, 33, 767)] == [0, 1, 31, 0, 1, 31]


@given(tori, integers)
def test_the_orbit_is_x_modulo_32_and_kept_by_the_torus(torus, x):
    assert orbit(x) == x % 32
    assert orbit(torus.lift(torus.embed(x))) == orbit(x), "32 divides the size of every torus"


# Unit groups


@pytest.mark.parametrize(
    ("modulus", "units"), [(1, [0]), (2, [1]), (8, [1, 3, 5, 7]), (9, [1, 2, 4, 5, 7, 8]), (12, [1, 5, 7, 11])]
)
def test_the_elements_of_small_groups(modulus, units):
    assert UnitGroup(modulus).elements() == units


def test_the_order_is_eulers_totient():
    assert [len(UnitGroup(n).elements()) for n in (96, 768, 97)] == [32, 256, 96]


@st.composite
def units(draw, count):
    """A unit group and some integers that are units in it: any integers, with shared factors taken out."""
    modulus = draw(st.integers(1, 1 << 40))
    found = []
    for x in draw(st.lists(integers, min_size=count, max_size=count)):
        x = x or 1
        while (shared := math.gcd(x, modulus)) > 1:
            x //= shared
        found.append(x)
    return UnitGroup(modulus), *found


@given(units(3))
def test_the_group_laws(drawn):
    group, x, y, z = drawn
    one = 1 % group.modulus
    product = group.multiply(x, y)
    assert product == x * y % group.modulus
    assert product in group, "closed"
    assert group.multiply(product, z) == group.multiply(x, group.multiply(y, z)), "associative"
    assert group.multiply(x, y) == group.multiply(y, x), "commutative"
    assert group.multiply(x, one) == x % group.modulus, "neutral element"
    assert group.multiply(x, group.inverse(x)) == one, "inverse"
    assert group.inverse(group.inverse(x)) == x % group.modulus
    assert 0 <= group.inverse(x) < group.modulus


@given(st.integers(1, 300))
def test_inverse_permutes_the_elements(modulus):
    group = UnitGroup(modulus)
    assert sorted(map(group.inverse, group.elements())) == group.elements()


@given(st.integers(2, 1 << 20), st.integers(1, 1 << 20), integers)
def test_what_shares_a_factor_has_no_inverse(factor, cofactor, multiple):
    modulus, x = factor * cofactor, factor * multiple
    group = UnitGroup(modulus)
    assert x not in group
    complaint = f"has no inverse modulo {modulus}: they share {math.gcd(x, modulus)}"
    with pytest.raises(ValueError, match=complaint):
        group.inverse(x)
    with pytest.raises(ValueError, match=complaint):
        group.multiply(1, x)


@pytest.mark.parametrize("modulus", [0, -5])
def test_a_group_needs_a_positive_modulus(modulus):
    with pytest.raises(ValueError, match="modulus of at least 1"):
        UnitGroup(modulus)


# The character table


def npy(header: str, data: bytes = b"") -> bytes:
    """A .npy file with a header of our own."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def saved(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_no_table_is_shipped():
    with pytest.raises(IsaError, match="no character table is shipped") as caught:
        load_character_table()
    assert "194×194" in str(caught.value)


@pytest.mark.parametrize("dtype", ["<i8", "<u4", "<f8", "<c16", ">f4"])
@pytest.mark.parametrize("as_text", [True, False])
def test_a_good_file_is_loaded(tmp_path, dtype, as_text):
    table = np.arange(CHARACTERS * CHARACTERS).reshape(CHARACTERS, CHARACTERS).astype(dtype)
    path = tmp_path / "table.npy"
    np.save(path, table)
    loaded = load_character_table(str(path) if as_text else path)
    np.testing.assert_array_equal(loaded, table)
    assert loaded.shape == (194, 194)
    assert type(loaded) is np.ndarray
    path.unlink()
    assert loaded[193, 193] == table[193, 193], "the file is no longer needed"


def test_a_table_in_column_order_is_loaded(tmp_path):
    table = np.asfortranarray(np.arange(194 * 194).reshape(194, 194))
    np.save(tmp_path / "table.npy", table)
    np.testing.assert_array_equal(load_character_table(tmp_path / "table.npy"), table)


@pytest.mark.parametrize(
    "array",
    [np.zeros((194, 193)), np.zeros(194 * 194), np.zeros((1, 194, 194)), np.zeros((194, 194), "S4")],
    ids=["shape", "flat", "3d", "text"],
)
def test_another_array_is_refused(tmp_path, array):
    path = tmp_path / "table.npy"
    path.write_bytes(saved(array))
    with pytest.raises(IsaError, match="not numbers of shape \\(194, 194\\)"):
        load_character_table(path)


def archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, table=np.eye(194))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no table",
        saved(np.eye(194))[:-1],
        saved(np.eye(194))[:50],
        saved(np.full((194, 194), None)),
        archive(),
        b"PK\x03\x04" + bytes(100),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (400000000000,), }\n"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-194, 194), }\n"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (194, "),
        npy("{'descr': 'what', 'fortran_order': False, 'shape': (194, 194), }\n"),
        b"\x93NUMPY\x09\x00 of the future",
    ],
    ids=[
        "empty", "text", "cut", "cut header", "objects", "archive", "broken archive", "promises terabytes",
        "negative shape", "broken header", "no dtype", "version",
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path, content):
    path = tmp_path / "broken.npy"
    path.write_bytes(content)
    with pytest.raises(IsaError, match=r"cannot read the character table '.*broken\.npy'"):
        load_character_table(path)


def test_a_missing_file_or_a_folder_is_refused_by_name(tmp_path):
    for path in (tmp_path / "missing.npy", tmp_path):
        with pytest.raises(IsaError, match="cannot read the character table"):
            load_character_table(path)
