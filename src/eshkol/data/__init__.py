"""Data: data sets, loaders, readers of files, transforms, and small data sets that come with the package.

    data = ek.data.digits("train")
    for x, y in ek.data.DataLoader(data, batch_size=64, shuffle=True, seed=0):
        ...

It stands on NumPy, and on tensors where batches leave it; worker processes do without tensors. `dataset` and `streams`
are what is loaded from, `structure` collates, `sampling` orders, `fetching` and `workers` load, `loader` ties them
together; `transforms` draw by keys of `draws`; readers use `files`.
"""

from __future__ import annotations

from eshkol.data.arrays import load_npy, load_npz, load_numpy
from eshkol.data.blocks import BlockDataset, load_text, split_tokens, tokenize_file
from eshkol.data.cifar import load_cifar10, load_cifar100, plain_unpickled, read_cifar
from eshkol.data.csv import CsvStream, load_csv
from eshkol.data.dataset import (
    ArrayDataset,
    ConcatDataset,
    Dataset,
    MappedDataset,
    Subset,
    TensorDataset,
    random_split,
)
from eshkol.data.draws import Pass
from eshkol.data.files import SkippedData
from eshkol.data.hf import HFDataset, load_hf_dataset
from eshkol.data.idx import load_mnist, read_idx
from eshkol.data.images import ImageFolder, load_imagenet, load_images, read_image
from eshkol.data.included import breast_cancer, digits, iris, text, wine
from eshkol.data.jsonl import JsonLines, JsonLinesStream, load_jsonl
from eshkol.data.loader import DataLoader
from eshkol.data.parquet import ParquetStream, load_parquet
from eshkol.data.sampling import DistributedSampler, InOrder, Sampler, Shuffled, WeightedSampler
from eshkol.data.streams import IterableDataset
from eshkol.data.structure import Padded, collate
from eshkol.data.tables import Examples, Table
from eshkol.data.tokenizers import BPETokenizer, ByteTokenizer, CharTokenizer, Tokenizer, load_tokenizer
from eshkol.data.transform import Transform
from eshkol.data.transforms import (
    CenterCrop,
    Compose,
    Normalize,
    OneHot,
    RandomCrop,
    RandomFlip,
    RandomRotation,
    Scale,
    Standardize,
)

__all__ = [
    "ArrayDataset", "BPETokenizer", "BlockDataset", "ByteTokenizer", "CenterCrop", "CharTokenizer", "Compose",
    "ConcatDataset", "CsvStream", "DataLoader", "Dataset", "DistributedSampler", "Examples", "HFDataset", "ImageFolder",
    "InOrder", "IterableDataset", "JsonLines", "JsonLinesStream", "MappedDataset", "Normalize", "OneHot", "Padded",
    "ParquetStream", "Pass", "RandomCrop", "RandomFlip", "RandomRotation", "Sampler", "Scale", "Shuffled",
    "SkippedData", "Standardize", "Subset", "Table", "TensorDataset", "Tokenizer", "Transform", "WeightedSampler",
    "breast_cancer", "collate", "digits", "iris", "load_cifar10", "load_cifar100", "load_csv", "load_hf_dataset",
    "load_imagenet", "load_images", "load_jsonl", "load_mnist", "load_npy", "load_npz", "load_numpy", "load_parquet",
    "load_text", "load_tokenizer", "plain_unpickled", "random_split", "read_cifar", "read_idx", "read_image",
    "split_tokens", "text", "tokenize_file", "wine",
]  # fmt: skip
