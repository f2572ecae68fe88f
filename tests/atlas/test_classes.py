"""The 96 resonance classes against the vectors and claims of the Atlas definition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batches import of_each
from eshkol.atlas import classes

ALL = range(classes.CLASSES)
IN_RANGE = st.integers(0, classes.CLASSES - 1)
NO_CLASS = [-1, 96, 97, 255, 1 << 40]


def test_the_sizes():
    assert (classes.CLASSES, classes.PAGES, classes.PAGE_BYTES) == (96, 48, 256)
    assert classes.CLASS_BYTES == 12_288
    assert classes.CLASS_MEMORY_BYTES == 1_179_648
    assert classes.PHASES == 768 == classes.CLASSES * classes.PHASE_STEP


# Class of a byte


@pytest.mark.parametrize(
    ("byte", "expected"),
    {
        0: 0, 1: 48, 2: 24, 4: 12, 8: 6, 16: 3, 32: 1, 42: 31, 64: 2, 96: 0, 127: 93, 255: 93,
    }.items(),
)  # fmt: skip
def test_the_class_vectors(byte, expected):
    assert classes.resonance_class(byte) == expected


def test_the_class_of_every_byte_is_the_formula():
    for byte in range(256):
        b = [byte >> i & 1 for i in range(8)]
        formula = 48 * b[0] + 24 * b[1] + 12 * b[2] + 6 * b[3] + 3 * b[4] + ((byte >> 5) & 3) % 3
        assert classes.resonance_class(byte) == formula


def test_bit_seven_is_ignored():
    for byte in range(128):
        assert classes.resonance_class(byte) == classes.resonance_class(byte | 128)


def test_every_class_is_met_by_two_or_four_bytes():
    met = Counter(classes.resonance_class(byte) for byte in range(256))
    assert sorted(met) == list(ALL)
    assert met == {cls: 4 if cls % 3 == 0 else 2 for cls in ALL}, "both 0 and 3 are the ternary digit 0"


# Mirror and unity


@pytest.mark.parametrize(("cls", "expected"), [(5, 2), (42, 45), (95, 92)])
def test_the_mirror_vectors(cls, expected):
    assert classes.mirror(cls) == expected


def test_the_mirror_makes_48_pairs_without_a_fixed_point():
    for cls in ALL:
        other = classes.mirror(cls)
        assert other in ALL
        assert other == (cls + 3 if cls % 6 < 3 else cls - 3)
        assert other != cls
        assert classes.mirror(other) == cls
    assert len({frozenset((cls, classes.mirror(cls))) for cls in ALL}) == 48


def test_the_mirror_flips_bit_four_of_the_byte():
    for byte in range(256):
        assert classes.resonance_class(byte ^ 16) == classes.mirror(classes.resonance_class(byte))


def test_the_unity_classes_are_1_and_4():
    assert [cls for cls in ALL if classes.is_unity(cls)] == [1, 4]
    assert classes.mirror(1) == 4, "they are each other's mirror"


@of_each("number", NO_CLASS)
def test_what_is_no_class_is_no_unity_class(number):
    """UnityTest asks whether src is 1 or 4, of any number; MIRROR alone refuses what is no class."""
    assert not classes.is_unity(number)


# Neighbours


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (0, [1, 6, 12, 24, 48]),
        (1, [0, 2, 7, 13, 25, 49]),
        (42, [18, 30, 36, 43, 90]),
        (95, [47, 71, 83, 89, 94]),
    ],
)
def test_the_neighbour_vectors(cls, expected):
    assert list(classes.neighbours(cls)) == expected


def test_neighbours_flip_one_binary_digit_or_step_in_the_ternary_one():
    def digits(cls):
        return cls // 48 % 2, cls // 24 % 2, cls // 12 % 2, cls // 6 % 2, cls // 3 % 2, cls % 3

    for cls in ALL:
        near = {
            other
            for other in ALL
            if sum(abs(a - b) for a, b in zip(digits(cls), digits(other), strict=True)) == 1
            and other != classes.mirror(cls)
        }
        assert set(classes.neighbours(cls)) == near


def test_neighbours_are_ascending_distinct_and_five_or_six():
    for cls in ALL:
        found = classes.neighbours(cls)
        assert list(found) == sorted(set(found))
        assert all(other in ALL and other != cls for other in found)
        assert len(found) == (6 if cls % 3 == 1 else 5)
    assert max(len(classes.neighbours(cls)) for cls in ALL) == classes.MAX_NEIGHBOURS


def test_neighbourhood_is_symmetric_with_256_edges():
    edges = {frozenset((cls, other)) for cls in ALL for other in classes.neighbours(cls)}
    assert len(edges) == 256
    assert sum(len(classes.neighbours(cls)) for cls in ALL) == 2 * 256
    for cls in ALL:
        assert all(cls in classes.neighbours(other) for other in classes.neighbours(cls))


def test_neighbourhood_commutes_with_the_mirror_and_never_crosses_it():
    for cls in ALL:
        assert classes.mirror(cls) not in classes.neighbours(cls)
        across = sorted(classes.mirror(other) for other in classes.neighbours(cls))
        assert list(classes.neighbours(classes.mirror(cls))) == across


# Boundary map


@pytest.mark.parametrize(
    ("place", "expected"),
    [((0, 0, 0), 0), ((1, 2, 3), 12803), ((5, 10, 20), 64020), ((95, 47, 255), 1_179_647)],
)
def test_the_boundary_map_vectors(place, expected):
    assert classes.boundary_map(*place) == expected


@given(IN_RANGE, st.integers(0, 47), st.integers(0, 255))
def test_the_boundary_map_is_linear_and_can_be_undone(cls, page, byte):
    linear = classes.boundary_map(cls, page, byte)
    assert 0 <= linear < classes.CLASS_MEMORY_BYTES
    inside = linear % classes.CLASS_BYTES
    assert (linear // classes.CLASS_BYTES, inside // 256, inside % 256) == (cls, page, byte)


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ((96, 0, 0), "class 96 does not exist"),
        ((-1, 0, 0), "class -1 does not exist"),
        ((0, 48, 0), "page 48 does not exist"),
        ((0, 255, 0), "page 255 does not exist"),
        ((0, -1, 0), "page -1 does not exist"),
        ((0, 0, 256), "byte 256 is not on a page"),
        ((0, 0, -1), "byte -1 is not on a page"),
    ],
)
def test_places_outside_the_classes_are_errors(place, complaint):
    with pytest.raises(ValueError, match=complaint):
        classes.boundary_map(*place)


# Phase


def test_the_phase_counter_wraps_at_768():
    assert classes.write_phase(750 + 30, 0) == 12
    assert classes.write_phase(767, 0) == 767
    assert classes.write_phase(768, 0) == 0


@pytest.mark.parametrize(("phase", "cls", "seen"), [(0, 0, 0), (0, 1, 760), (8, 1, 0), (100, 95, 108), (767, 0, 767)])
def test_phase_as_a_class_sees_it(phase, cls, seen):
    assert classes.read_phase(phase, cls) == seen
    assert classes.write_phase(seen, cls) == phase


@given(st.integers(-(1 << 64), 1 << 64), IN_RANGE)
def test_a_class_reads_the_phase_it_wrote(value, cls):
    phase = classes.write_phase(value, cls)
    assert 0 <= phase < 768
    assert classes.read_phase(phase, cls) == value % 768
    assert phase == (value + 8 * cls) % 768


# What is no class


@pytest.mark.parametrize("number", NO_CLASS)
@of_each(
    "function",
    [
        classes.check_class,
        classes.mirror,
        classes.neighbours,
        lambda cls: classes.boundary_map(cls, 0, 0),
        lambda cls: classes.read_phase(0, cls),
        lambda cls: classes.write_phase(0, cls),
    ],
)
def test_a_number_that_is_no_class_is_an_error(function, number):
    with pytest.raises(ValueError, match=f"class {number} does not exist: classes are 0 to 95"):
        function(number)
