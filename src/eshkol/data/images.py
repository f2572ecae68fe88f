"""Folders of images, one folder for each class; ImageNet's layout. Pictures are opened by Pillow when they are loaded.

A picture that cannot be read is an error that names its file; `DataLoader(on_error="skip")` leaves it out and goes on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.dataset import Dataset, checked_index
from eshkol.data.structure import told_count
from eshkol.errors import DataError, MissingData

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
MODES = ("RGB", "L", "RGBA")
# How many pixels a byte of a file stands for at most: eight, where each is a bit, times what deflate makes of a byte.
_PIXELS_OF_A_BYTE = {"PNG": 8 * files.MOST_DEFLATED, "PPM": 8}


def read_image(path: Any, size: Any = None, mode: str = "RGB", crop: int | None = None) -> Any:
    """The bytes of a picture, channels × height × width: resized to `size` (height, width), or with `crop` so that its
    shorter side is `size`, of which the middle is cut out."""
    pillow = files.optional("PIL.Image", "reading pictures", "images")
    where = files.existing(path, "read_image")
    try:
        with pillow.open(where) as picture:
            _refuse_bomb(picture, where, pillow.MAX_IMAGE_PIXELS)
            made = picture.convert(mode)
            if crop is not None:
                made = _cropped(made, int(size), crop)
            elif size is not None:
                height, width = (size, size) if isinstance(size, int) else size
                made = made.resize((width, height))
            array = np.asarray(made)
    except DataError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, pillow.DecompressionBombError, Warning) as error:
        raise DataError(f"{where}: the picture cannot be read: {error}") from None
    except Exception as error:  # what a broken picture makes of its decoder
        raise DataError(f"{where}: the picture cannot be read: {type(error).__name__}: {error}") from error
    return np.ascontiguousarray(array[None] if array.ndim == 2 else array.transpose(2, 0, 1))


def _refuse_bomb(picture: Any, where: Path, most: int | None) -> None:
    """Refuse a picture whose header says more than can be in the file, before memory is taken for it."""
    pixels = picture.width * picture.height
    held = _PIXELS_OF_A_BYTE.get(picture.format, math.inf) * where.stat().st_size
    if pixels > held or (most is not None and pixels > most):
        raise DataError(
            f"{where}: {picture.width:,} × {picture.height:,} pixels cannot be in this file, or are too many"
        )


def _cropped(picture: Any, shorter: int, crop: int) -> Any:
    width, height = picture.size
    scale = shorter / min(width, height)
    width, height = max(crop, round(width * scale)), max(crop, round(height * scale))
    left, top = (width - crop) // 2, (height - crop) // 2
    return picture.resize((width, height)).crop((left, top, left + crop, top + crop))


class ImageFolder(Dataset):
    """Pictures in one folder for each class: samples (picture, class), the classes being the sorted folder names."""

    def __init__(
        self,
        root: Any,
        size: Any = None,
        *,
        mode: str = "RGB",
        scale: bool = True,
        crop: int | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        base = Path(root)
        files.chosen("load_images", "mode", mode, MODES)
        with files.told(base):
            there = base.is_dir()
        if not there:
            raise MissingData(
                f"load_images: there is no folder {base}; nothing is downloaded",
                hint=f"put pictures there, a folder for each class: {base}/cat/1.png",
            )
        with files.told(base):
            found = sorted(p.name for p in base.iterdir() if p.is_dir() and not p.name.startswith("."))
        self.classes = found if classes is None else list(classes)
        unknown = sorted(set(found) - set(self.classes))
        if unknown:
            raise DataError(f"load_images: folder {base / unknown[0]} is none of the classes {self.classes}")
        self.paths: list[Path] = []
        labels = []
        for label, name in enumerate(self.classes):
            pictures = _pictures(base / name) if name in found else []
            self.paths += pictures
            labels += [label] * len(pictures)
        if not self.paths:
            raise MissingData(
                f"load_images: no pictures in folders below {base}",
                hint=f"a folder for each class, with files that end in {', '.join(ENDINGS)}",
            )
        self.labels = np.array(labels, np.int64)
        self._size, self._mode, self._scale, self._crop = size, mode, scale, crop

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        k = checked_index(index, len(self))
        image = read_image(self.paths[k], self._size, self._mode, self._crop)
        return (image * np.float32(1 / 255) if self._scale else image), self.labels[k]

    def told(self) -> str:
        return f"pictures of {told_count(len(self.classes), 'class', 'classes')}"


def _pictures(folder: Path) -> list[Path]:
    """The pictures in a folder and below it. A folder that cannot be read is not an empty one."""

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename}: it cannot be read: {error.strerror}") from None

    names = (Path(place, name) for place, _, here in os.walk(folder, onerror=refuse) for name in here)
    return sorted(p for p in names if p.suffix.lower() in ENDINGS)


def load_images(root: Any, size: Any = None, *, mode: str = "RGB", scale: bool = True) -> ImageFolder:
    """A folder of pictures, one folder for each class: samples (channels × height × width from 0 to 1, class).

    Batches need pictures of one size: `size=32`, `size=(24, 32)`. `mode="L"` makes them grey; `scale=False`: bytes.
    """
    return ImageFolder(root, size, mode=mode, scale=scale)


def load_imagenet(root: Any = None, split: str = "train", size: int = 224, *, scale: bool = True) -> ImageFolder:
    """ImageNet as its archives are unpacked: `root/train/n01440764/….JPEG`, `root/val/n01440764/….JPEG`.

    The shorter side of a picture is made 256/224 of `size`, and the middle is cut out, as is usual for evaluation.
    """
    files.chosen("load_imagenet", "split", split, ("train", "val"))
    base = files.folder(root, "load_imagenet")
    places = [base / split, base / "imagenet" / split, base / "ILSVRC" / "Data" / "CLS-LOC" / split]
    for place in places:
        if place.is_dir():
            return ImageFolder(place, round(size * 256 / 224), scale=scale, crop=size)
    raise MissingData(
        f"load_imagenet: there is no folder {places[0]}; nothing is downloaded",
        hint=f"unpack the pictures of image-net.org there, a folder for each class: {places[0]}/n01440764/…",
    )
