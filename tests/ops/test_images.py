"""Resizing, sampling and patches beyond their samples: what they keep, where they are exact, errors."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value
from op_harness import rng_of

from eshkol.errors import DTypeError, ShapeError


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(1, 1), (3, 8), (4, 5)])
def test_what_is_even_stays_even(mode, size):
    found = value("interpolate", np.full((1, 2, 4, 5), 1.5), size=size, mode=mode)
    np.testing.assert_allclose(found, np.full((1, 2, *size), 1.5))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_aligned_corners_stay(mode):
    x = rng_of("corners").standard_normal((1, 1, 3, 4))
    found = value("interpolate", x, size=(7, 6), mode=mode, align_corners=True)
    np.testing.assert_allclose(found[..., ::6, ::5], x[..., ::2, ::3])


def test_nearest_takes_integers_and_repeats_them():
    x = np.array([[[2**60 + 1, 7]]])
    np.testing.assert_array_equal(value("interpolate", x, scale_factor=2), [[[2**60 + 1, 2**60 + 1, 7, 7]]])


def test_sampling_at_the_elements_gives_them():
    x = rng_of("grid").standard_normal((2, 3, 4, 5))
    down, across = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    grid = np.broadcast_to(np.stack([across, down], -1), (2, 4, 5, 2)).copy()
    np.testing.assert_allclose(value("grid_sample", x, grid, align_corners=True), x, atol=1e-12)


def test_points_far_outside_and_nan():
    x = np.ones((1, 1, 2, 2))
    grid = np.array([[[[1e30, 0.0], [-1e30, -1e30], [3.0, 0.0]]]])
    np.testing.assert_array_equal(value("grid_sample", x, grid), np.zeros((1, 1, 1, 3)))
    np.testing.assert_array_equal(value("grid_sample", x, grid, padding_mode="border"), np.ones((1, 1, 1, 3)))
    assert all(np.all(np.isfinite(g)) for g in gradient("grid_sample", x, grid, padding_mode="border"))
    np.testing.assert_array_equal(value("grid_sample", x, np.full((1, 1, 1, 2), np.nan)), [[[[0.0]]]])


def test_shuffles_are_inverse():
    x = rng_of("shuffle").standard_normal((2, 8, 3, 2))
    np.testing.assert_array_equal(
        value("pixel_unshuffle", value("pixel_shuffle", x, upscale_factor=2), downscale_factor=2), x
    )


def test_fold_counts_how_often_unfold_reads():
    x = np.ones((1, 4, 4))
    back = value("fold", value("unfold", x, kernel_size=3, padding=1), output_size=(4, 4), kernel_size=3, padding=1)
    edge = np.array([2.0, 3.0, 3.0, 2.0])
    np.testing.assert_array_equal(back[0], np.outer(edge, edge))


def test_patches_times_a_kernel_are_a_convolution():
    rng = rng_of("patches")
    x, weight = rng.standard_normal((2, 3, 5, 6)), rng.standard_normal((4, 3, 2, 3))
    columns = value("unfold", x, kernel_size=(2, 3), stride=2, padding=1)
    wanted = value("conv2d", x, weight, stride=2, padding=1)
    np.testing.assert_allclose((weight.reshape(4, -1) @ columns).reshape(wanted.shape), wanted)


@pytest.mark.parametrize(
    ("name", "shapes", "how", "message"),
    [
        ("interpolate", [(1, 1, 4)], {}, "size or the scale factor"),
        ("interpolate", [(1, 1, 4)], {"size": 2, "scale_factor": 2}, "size or the scale factor"),
        ("interpolate", [(1, 1, 4)], {"size": 2, "mode": "bilinear"}, "for 2 axes"),
        ("interpolate", [(1, 1, 4)], {"size": 2, "mode": "quadratic"}, "no mode 'quadratic'"),
        ("interpolate", [(1, 1, 4)], {"size": 0}, "below 1"),
        ("interpolate", [(1, 1, 4)], {"scale_factor": -1.0}, "positive number"),
        ("interpolate", [(1, 1, 4)], {"scale_factor": 0.1}, "below 1"),
        ("interpolate", [(4, 4)], {"size": 2}, "behind batch and channels"),
        ("interpolate", [(1, 1, 0)], {"size": 2}, "are empty"),
        ("grid_sample", [(1, 1, 2, 2), (1, 2, 2, 3)], {}, "no images and points"),
        ("grid_sample", [(1, 1, 2, 2), (1, 2, 2, 2)], {"padding_mode": "reflection"}, "reflection"),
        ("pixel_shuffle", [(1, 3, 2, 2)], {"upscale_factor": 2}, "multiple of 4"),
        ("pixel_unshuffle", [(1, 3, 3, 2)], {"downscale_factor": 2}, "multiples of 2"),
        ("pixel_shuffle", [(1, 3, 2, 2)], {"upscale_factor": 0}, "positive integer"),
        ("unfold", [(2, 3)], {"kernel_size": 2}, "channels × height × width"),
        ("unfold", [(1, 2, 3)], {"kernel_size": 4}, "does not fit"),
        ("fold", [(4, 5)], {"kernel_size": 2, "output_size": (3, 3)}, "columns of an image"),
    ],
)
def test_what_does_not_fit_is_refused(name, shapes, how, message):
    with pytest.raises(ShapeError, match=message):
        value(name, *(np.zeros(s) for s in shapes), **how)


def test_integers_are_not_mixed():
    with pytest.raises(DTypeError, match="would round"):
        value("interpolate", np.zeros((1, 1, 2, 2), np.int32), size=3, mode="bilinear")
