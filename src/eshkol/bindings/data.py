"""Data as Scheme has it: data sets, loaders, readers, transforms and tokenizers.

Comes in: what `lib/eshkol/data.esk` gives, converted. Goes out: objects of `eshkol.data`, and batches as lists of
tensors. The work is that of `eshkol.data`; transforms are applied to tensors at once, to data sets sample by sample.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from eshkol import data as library
from eshkol.bindings.layers import called, in_words
from eshkol.bindings.rows import dashed, shown
from eshkol.bindings.rows import data as tensor_of
from eshkol.bindings.values import Pair, Symbol
from eshkol.data import files
from eshkol.errors import DataError, DTypeError, EshkolError, IndexOutOfRange, ShapeError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

WALK = "_walk_of_scheme"  # the attribute of a loader that holds what dataloader-next goes on with
SPLITS = ("train", "test")
READER = re.compile(r"\b(?:load|read)_[a-z0-9_]+")  # the name of a reader, as Python has it
OPTION = re.compile(r"\b([a-z_]+)=('\w+|FOLDER)'?")  # root=FOLDER, on_error='skip'


# ---- data sets -------------------------------------------------------------------------------------------------------


def make_dataset(*parts: Any) -> Any:
    """A data set of tensors or lists of equal length, inputs and labels for example."""
    if not parts:
        raise DTypeError("a data set is made of tensors", hint="(make-dataset data labels)")
    return called(library.ArrayDataset, tuple(tensor_of(x) if isinstance(x, list) else x for x in parts), {})


def wanted(given: Any) -> Any:
    """The data set that an argument must be."""
    if isinstance(given, library.Dataset) or (isinstance(given, list) and not isinstance(given, Tensor)):
        return given
    raise DTypeError(f"a data set is wanted as argument 1, not {shown(given)}", hint="(make-dataset data labels)")


def size(data: Any) -> int:
    """How many samples there are."""
    return len(wanted(data))


def item(data: Any, index: Any) -> Any:
    """The sample of an index: a list of its parts, or a tensor where it has one."""
    length = len(wanted(data))
    if type(index) is not int or not 0 <= index < length:
        raise IndexOutOfRange(f"an index from 0 to {length - 1} is wanted, not {shown(index)}")
    return _told(lambda: given_out(data[index]))


def cut(data: Any, start: Any, end: Any = None) -> Any:
    """The samples from start on, and before end."""
    length = len(wanted(data))
    stop = length if end is None or end is False else end
    if type(start) is not int or type(stop) is not int or not 0 <= start <= stop <= length:
        raise IndexOutOfRange(f"{shown(start)} and {shown(stop)} are no part of {length} samples")
    return library.Subset(data, slice(start, stop))


def classes(data: Any) -> list[Any]:
    """The names of classes, where the data set knows them."""
    return list(getattr(wanted(data), "classes", None) or [])


def given_out(sample: Any) -> Any:
    """A sample or batch as Scheme has it: parts as a list, arrays as tensors."""
    if isinstance(sample, tuple | list):
        return [given_out(part) for part in sample]
    if isinstance(sample, dict):
        return {name: given_out(part) for name, part in sample.items()}
    if isinstance(sample, np.ndarray):
        return sample.tolist() if sample.dtype.kind in "OUS" else ek.asarray(sample)  # text is a list of strings
    return sample.item() if isinstance(sample, np.generic) else sample


def _told(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except EshkolError as error:
        raise in_words(error) from None


# ---- loaders ---------------------------------------------------------------------------------------------------------


def make_loader(data: Any, batch_size: Any = 1, shuffle: Any = False, workers: Any = None, **how: Any) -> Any:
    """Batches of a data set, epoch after epoch."""
    count = 0 if workers is False else workers
    given = {"batch_size": batch_size, "shuffle": shuffle is not False, "workers": count, **how}
    return called(library.DataLoader, (data if hasattr(data, "__iter__") else wanted(data),), given)


def loader_wanted(given: Any) -> Any:
    """The loader that an argument must be."""
    if isinstance(given, library.DataLoader):
        return given
    raise DTypeError(f"a data loader is wanted as argument 1, not {shown(given)}", hint="(make-dataloader data 64 #t)")


def loader_length(loader: Any) -> int:
    """How many batches an epoch has."""
    known = loader_wanted(loader)
    found: int = _told(lambda: len(known))
    return found


def loader_next(loader: Any) -> Any:
    """The next batch, or #f after the last; the call after that begins another epoch."""
    known = loader_wanted(loader)
    walk: Iterator[Any] | None = known.__dict__.get(WALK)
    if walk is None:
        walk = known.__dict__[WALK] = iter(known)
    found = _told(lambda: next(walk, None))
    if found is None:
        known.__dict__[WALK] = None
        return False
    return given_out(found)


def loader_reset(loader: Any) -> None:
    """Begin the epoch again."""
    known = loader_wanted(loader)
    known.__dict__[WALK] = None
    _told(lambda: known.set_epoch(known.epoch))


def batches(loader: Any) -> Iterator[Any]:
    """The batches of one epoch, as Scheme has them."""
    if not hasattr(loader, "__iter__") or isinstance(loader, str | Tensor | dict):
        raise DTypeError(f"a data loader, or a list of batches, is wanted as argument 2, not {shown(loader)}")
    return map(given_out, loader)


def batch_after(walk: Any) -> Any:
    """The next batch of a walk, or #f."""
    return _told(lambda: next(walk.batches, False))


class Walk:
    """A walk over batches, which stays an object in Scheme."""

    def __init__(self, loader: Any) -> None:
        self.batches = batches(loader)


def walk(loader: Any) -> Walk:
    """A walk over the batches of one epoch."""
    return Walk(loader)


# ---- transforms ------------------------------------------------------------------------------------------------------


def _transformed(given: Any, transform: Any) -> Any:
    """A data set with its inputs transformed, or a tensor that is."""
    if isinstance(given, library.Dataset):
        sample = given[0]
        return _told(lambda: given.map(transform, on=0 if isinstance(sample, tuple) else None))
    tensor = tensor_of(given) if isinstance(given, list) else given
    if not isinstance(tensor, Tensor):
        raise DTypeError(f"a tensor or a data set is wanted as argument 1, not {shown(given)}")
    return _told(lambda: transform(tensor))


def normalize(given: Any, mean: Any, std: Any) -> Any:
    """(data - mean) / std; lists have one number for each channel, or for each feature of rows."""
    if isinstance(given, library.Dataset):
        return _transformed(given, called(library.Normalize, (_plain(mean), _plain(std)), {}))
    x = tensor_of(given) if isinstance(given, list) else given
    return (x - _along(mean, x)) / _along(std, x)


def _plain(given: Any) -> Any:
    return given.tolist() if isinstance(given, Tensor) else given


def _along(given: Any, x: Tensor) -> Any:
    """Numbers of channels or features, shaped to go along the data."""
    values = tensor_of(given) if isinstance(given, list) else given
    if not isinstance(values, Tensor) or values.ndim != 1:
        return values
    axis = x.ndim - 3 if x.ndim >= 3 else x.ndim - 1
    if x.shape[axis] != values.shape[0]:
        raise ShapeError(
            f"{values.shape[0]} numbers for {x.shape[axis]} "
            f"{'channels' if x.ndim >= 3 else 'features'} of data of shape {list(x.shape)}"
        )
    return ek.reshape(values, (values.shape[0], *(1,) * (x.ndim - 1 - axis)))


def standardize(given: Any) -> Any:
    """Every feature with mean 0 and deviation 1 over the rows; features that are the same everywhere are 0."""
    if isinstance(given, library.Dataset):
        return _transformed(given, called(library.Standardize.of, (given,), {}))
    x = tensor_of(given) if isinstance(given, list) else given
    middle = ek.mean(x, 0, True)
    spread = ek.sqrt(ek.mean(ek.square(x - middle), 0, True))
    return (x - middle) / ek.where(spread > 0, spread, ek.ones_like(spread))


def random_crop(image: Any, size: Any, **how: Any) -> Any:
    """A part of an image from a random place."""
    return _transformed(image, called(library.RandomCrop, (size,), how))


def random_flip(image: Any, axis: Any = -1, **how: Any) -> Any:
    """An image, or its mirror image along an axis."""
    if type(axis) is int and axis >= 0:
        axis -= image.ndim if isinstance(image, Tensor) else 3
    return _transformed(image, called(library.RandomFlip, (), {"axis": axis, **how}))


def random_rotation(image: Any, max_angle: Any, **how: Any) -> Any:
    """An image turned by an angle of so many degrees at most."""
    return _transformed(image, called(library.RandomRotation, (max_angle,), how))


# ---- readers ---------------------------------------------------------------------------------------------------------


def _splits(who: str, read: Callable[..., Any], given: tuple[Any, ...], how: dict[str, Any]) -> Any:
    """One data set, or a list of several: of splits, by name, or as flags for train and test."""
    flags = [x for x in given if isinstance(x, bool)]
    names = [name for name, chosen in zip(SPLITS, flags, strict=False) if chosen]
    for word in (x for x in given if not isinstance(x, bool)):
        if not isinstance(word, str):
            raise DTypeError(f"a split, 'train or 'test, is wanted, not {shown(word)}")
        if isinstance(word, Symbol) or str(word) in SPLITS:
            names.append(str(word))
        else:
            how.setdefault("root", str(word))
    found = [_read(read, (), {**how, "split": name}) for name in names or ["train"]]
    return found[0] if len(found) == 1 else found


def _read(function: Any, args: tuple[Any, ...], how: dict[str, Any]) -> Any:
    """What a reader gives; its errors say how Scheme calls it."""
    try:
        return called(function, args, how)
    except EshkolError as error:
        error.message = READER.sub(lambda found: dashed(found[0]), error.message.removeprefix(f"{function.__name__}: "))
        error.args = (error.message,)
        error.hint = error.hint and OPTION.sub(lambda found: f":{dashed(found[1])} {found[2]}", error.hint)
        raise


def load_mnist(*which: Any, **how: Any) -> Any:
    """MNIST."""
    return _splits("load-mnist", library.load_mnist, which, how)


def load_cifar10(*which: Any, **how: Any) -> Any:
    """CIFAR-10."""
    return _splits("load-cifar10", library.load_cifar10, which, how)


def load_digits(*which: Any, **how: Any) -> Any:
    """Handwritten digits that come with the package."""
    names = [str(x) for x in which]
    found = [_read(library.digits, (name,), how) for name in names or ["all"]]
    return found[0] if len(found) == 1 else found


def load_table(name: Any) -> Any:
    """A table that comes with the package."""
    tables = {"iris": library.iris, "wine": library.wine, "breast-cancer": library.breast_cancer}
    if str(name) not in tables:
        raise DataError(f"there is no table {shown(name)}", hint=f"there are {', '.join(tables)}")
    return tables[str(name)]()


def load_imagenet(root: Any = None, **how: Any) -> Any:
    """ImageNet."""
    return _read(library.load_imagenet, (root,), {k: str(v) if isinstance(v, Symbol) else v for k, v in how.items()})


def load_csv(path: Any, headers: Any = True, **how: Any) -> Any:
    """A CSV file."""
    header = [str(x) for x in headers] if isinstance(headers, list) else headers
    if isinstance(how.get("target"), str):
        how["target"] = str(how["target"])
    for option in ("fill", "dtypes"):
        if option in how:
            how[option] = _by_column(how[option], option)
    return _read(library.load_csv, (str(path),), {"header": header, **how})


def _by_column(given: Any, option: str) -> dict[str, Any]:
    """What is said for columns by name: a list of pairs, or a hash table."""
    if isinstance(given, list) and all(isinstance(x, Pair) for x in given):
        return {str(x.car): x.cdr for x in given}
    if isinstance(given, dict):
        return {str(name): value for name, value in given.items()}
    raise DTypeError(
        f"{dashed(option)} is said by column, in a list of pairs or a hash table, not {shown(given)}",
        hint=f":{dashed(option)} '((age . {0 if option == 'fill' else 'float64'}))",
    )


def load_images(directory: Any, labels: Any = None, **how: Any) -> Any:
    """A folder of pictures, one folder for each class."""
    classes = [str(x) for x in labels] if isinstance(labels, list) else None
    return _read(library.ImageFolder, (str(directory),), {**how, "classes": classes})


def load_parquet(path: Any, **how: Any) -> Any:
    """A Parquet file."""
    return _read(library.load_parquet, (str(path),), how)


def load_hf_dataset(name: Any, **how: Any) -> Any:
    """A data set of Hugging Face's that was saved to a folder."""
    return _read(library.load_hf_dataset, (str(name),), how)


def column(table: Any, name: Any) -> Any:
    """A column of a table: a tensor, or a list of strings."""
    columns = getattr(table, "columns", None)
    if not isinstance(columns, dict):
        raise DTypeError(f"a table is wanted as argument 1, not {shown(table)}", hint="(load-csv file)")
    if str(name) not in columns:
        raise DataError(f"the table has no column {shown(name)}", hint=f"it has {', '.join(columns)}")
    found = columns[str(name)]
    return found.tolist() if found.dtype.kind in "OUS" else ek.asarray(found)


# ---- text ------------------------------------------------------------------------------------------------------------


def load_text(file: Any = None) -> str:
    """The text of a file, or the one that comes with the package."""
    if file is None or file is False:
        return library.text()
    where = files.existing(str(file), "load-text")
    try:
        return bytes(files.read_all(where)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is no text in UTF-8: byte {error.start}") from None


def make_tokenizer(kind: Any, text: Any = None, size: Any = None) -> Any:
    """What makes numbers of text: by bytes, by the characters of a text, or by pairs that are frequent in it."""
    kinds: dict[str, Callable[[], Any]] = {
        "byte": library.ByteTokenizer,
        "char": lambda: library.CharTokenizer.train(text),
        "bpe": lambda: library.BPETokenizer.train(text, size),
    }
    if str(kind) not in kinds:
        raise DataError(f"there is no kind {shown(kind)} of tokenizers", hint=f"there are {', '.join(kinds)}")
    if str(kind) != "byte" and not isinstance(text, str):
        raise DTypeError(f"a {kind} tokenizer is made of a text, not of {shown(text)}")
    if str(kind) == "bpe" and type(size) is not int:
        raise DTypeError("a bpe tokenizer needs the number of tokens", hint="(make-tokenizer 'bpe text 512)")
    return _told(kinds[str(kind)])


def _tokenizer(given: Any) -> Any:
    if isinstance(given, library.Tokenizer):
        return given
    raise DTypeError(f"a tokenizer is wanted as argument 1, not {shown(given)}", hint="(make-tokenizer 'char text)")


def encode(tokenizer: Any, text: Any) -> Any:
    """The tokens of a text, a tensor of integers."""
    if not isinstance(text, str | bytes):
        raise DTypeError(f"a text is wanted as argument 2, not {shown(text)}")
    return _told(lambda: ek.asarray(np.asarray(_tokenizer(tokenizer).encode(text))))


def decode(tokenizer: Any, tokens: Any) -> str:
    """The text of tokens."""
    plain = tokens.tolist() if isinstance(tokens, Tensor) else tokens
    found: str = _told(lambda: _tokenizer(tokenizer).decode(plain))
    return found


def count(tokenizer: Any) -> int:
    """How many tokens there are."""
    return len(_tokenizer(tokenizer))


def blocks(tokens: Any, length: Any, stride: Any = None) -> Any:
    """A data set for language models: stretches of tokens, and the same moved on by one."""
    array = tokens.numpy() if isinstance(tokens, Tensor) else tokens
    return called(library.BlockDataset, (array, length), {} if stride in (None, False) else {"stride": stride})
