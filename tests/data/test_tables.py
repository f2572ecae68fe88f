"""CSV and Parquet: types, missing values, quotes, hostile files; and the tables they become."""

from __future__ import annotations

import csv
import gzip
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eshkol import data as ed
from eshkol.errors import DataError

TEXT = """name,age,height,member,note
"Doe, Jane",34,1.70,true,"says ""hi""
and more"
Max,,1.8e0,false,
Ünal,7,NaN,TRUE,x
"""


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "people.csv"
    found.write_text(TEXT, "utf-8")
    return found


def test_types_are_found(path) -> None:
    table = ed.load_csv(path)
    assert repr(table) == "<Table of 3 rows: name: text, age: float64, height: float64, member: bool, note: text>"
    assert table["name"].tolist() == ["Doe, Jane", "Max", "Ünal"]
    assert table["note"].tolist() == ['says "hi"\nand more', "", "x"]
    assert table["age"][0] == 34
    assert math.isnan(table["age"][1])
    assert table["member"].tolist() == [True, False, True]
    assert table[2]["age"] == 7
    (batch,) = ed.DataLoader(table, 3)
    assert batch["member"].tolist() == [True, False, True]
    assert list(batch["name"]) == ["Doe, Jane", "Max", "Ünal"]
    with pytest.raises(DataError, match="did you mean 'height'"):
        table["heigth"]


def test_types_and_missing_values_are_as_told(path) -> None:
    assert ed.load_csv(path, fill={"age": 0})["age"].dtype == np.int64
    assert ed.load_csv(path, dtypes={"age": "text"})["age"].tolist() == ["34", "", "7"]
    assert ed.load_csv(path, columns=["age", "name"]).names == ["age", "name"]
    with pytest.warns(ed.SkippedData, match=r"3 places of .*people\.csv .*: .*line 4, column 'age': the value"):
        table = ed.load_csv(path, on_missing="skip")
    assert len(table) == 1
    assert table["age"].dtype == np.int64
    assert len(table.skipped) == 3
    with pytest.raises(DataError, match="line 4, column 'age': the value is missing"):
        ed.load_csv(path, on_missing="error")
    with pytest.raises(DataError, match="line 2, column 'name': 'Doe, Jane' is no float64"):
        ed.load_csv(path, dtypes={"name": float})
    with pytest.raises(DataError, match="no column 'ages'"):
        ed.load_csv(path, dtypes={"ages": int})
    with pytest.raises(DataError, match="dtype is one of"):
        ed.load_csv(path, dtypes={"age": "complex"})


def test_headers(tmp_path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1;2.5\n\n3;4\n"))
    table = ed.load_csv(path, header=False, delimiter=";")
    assert table.names == ["c0", "c1"]
    assert table["c0"].dtype == np.int64
    assert table["c1"].tolist() == [2.5, 4.0]
    assert ed.load_csv(path, header=["x", "y"], delimiter=";", target="y")[0][0].tolist() == [1.0]
    path.write_bytes("\ufeffa,b\n1,2\n".encode())
    assert ed.load_csv(path).names == ["a", "b"]


def test_features_and_targets(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y,kind\n1,2,b\n3,4,a\n5,6,b\n")
    data = ed.load_csv(path, target="kind")
    assert data.classes == ["a", "b"]
    assert data.y.tolist() == [1, 0, 1]
    assert data.x.dtype == np.float32
    assert ed.load_csv(path).xy("x", ["y"])[1][0].tolist() == [4.0]
    with pytest.raises(DataError, match="column 'kind' holds text"):
        ed.load_csv(path, target="x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"a,b\n", "no rows behind the header"),
        (b"a,a\n1,2\n", "two columns are called 'a'"),
        (b"a,b\n1,2\n3\n", "line 3: 1 cells, and there are 2 columns"),
        (b'a,b\n1,"2\n3,4\n', "line 2: unexpected end of data"),
        (b'a,b\n1,"2"x\n', "line 2: .*expected after"),
        (b"a,b\n1,\xff\n", "line 2: no utf-8: byte 0xff"),
        (b"a,b\n1," + b"9" * 2_000_000 + b"\n", "line 2: field larger than field limit"),
        (b"\x1f\x8b\x08\x00broken", "compressed file"),
    ],
)
def test_broken_csv_is_named(tmp_path, data, words) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(DataError, match=words) as caught:
        ed.load_csv(path)
    assert tracemalloc.get_traced_memory()[1] < 2e7
    tracemalloc.stop()
    assert str(path) in str(caught.value)


def test_broken_rows_are_left_out_when_asked(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3\n5,6,7\n8,x\n9,10\n")
    with pytest.warns(ed.SkippedData, match=r"2 places .* line 3: 1 cells"):
        table = ed.load_csv(path, on_error="skip")
    assert table["b"].tolist() == ["2", "x", "10"]
    with pytest.warns(ed.SkippedData, match="3 places"):
        table = ed.load_csv(path, on_error="skip", dtypes={"b": int})
    assert table["a"].tolist() == [1, 9]
    stream = ed.CsvStream(path, on_error="skip", dtypes={"b": int})
    with pytest.warns(ed.SkippedData, match="3 places"):
        assert [row["a"] for row in stream] == [1, 9]
    assert len(stream.skipped) == 3


def test_streams_are_what_tables_are(path) -> None:
    stream, table = ed.CsvStream(path), ed.load_csv(path)
    for row, other in zip(stream, table, strict=True):
        assert row.keys() == other.keys()
        assert all(a == b or (a != a and b != b) for a, b in zip(row.values(), other.values(), strict=True))
    (batch,) = ed.DataLoader(ed.CsvStream(path, columns=["member"]), 3)
    assert batch["member"].tolist() == [True, False, True]


def test_a_stream_whose_type_changes_is_told(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "1\n" * 1500 + "x\n")
    with pytest.raises(DataError, match="line 1502, column 'a': 'x' is no int64"):
        list(ed.CsvStream(path))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """One file for all examples."""
    return tmp_path_factory.mktemp("csv") / "a.csv"


CELLS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str), st.floats(allow_nan=False).map(repr),
    st.text("a1-.,;\"'\n é\u2028", max_size=6),
)  # fmt: skip


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=6))
@settings(max_examples=40)
def test_any_table_is_read_as_it_was_written(scratch, rows) -> None:
    with scratch.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b"])
        writer.writerows(rows)
    table = ed.load_csv(scratch, missing=(), dtypes={"b": "text"})
    assert table["b"].tolist() == [b for _, b in rows]
    first = [a for a, _ in rows]
    if table["a"].dtype == np.int64:
        assert table["a"].tolist() == [int(a) for a in first]
    elif table["a"].dtype == np.float64:
        np.testing.assert_array_equal(table["a"], [float(a) for a in first])
    elif table["a"].dtype == object:
        assert table["a"].tolist() == first


def test_parquet(tmp_path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    columns = {"x": [1, 2, 3], "y": [0.5, None, 2.0], "name": ["a", None, "c"], "ok": [True, False, True]}
    parquet.write_table(arrow.table(columns), path)
    table = ed.load_parquet(path)
    assert table["x"].tolist() == [1, 2, 3]
    assert math.isnan(table["y"][1])
    assert table["name"].tolist() == ["a", "", "c"]
    assert table["ok"].tolist() == [True, False, True]
    assert ed.load_parquet(path, target="name", columns=["x", "name"])[0][1] == 1
    assert [row["x"] for row in ed.ParquetStream(path, columns=["x"], rows=2)] == [1, 2, 3]
    with pytest.raises(DataError, match="no column 'z'"):
        ed.load_parquet(path, columns=["z"])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="no Parquet file"):
        ed.load_parquet(path)


def test_hugging_face(tmp_path) -> None:
    library = pytest.importorskip("datasets")
    rows = pytest.importorskip("pyarrow").table({"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]})
    data = library.Dataset(library.table.InMemoryTable(rows), fingerprint="rows")
    data.save_to_disk(tmp_path / "one")
    found = ed.load_hf_dataset(tmp_path / "one", columns=["x", "y"])
    assert found[1][0].tolist() == [3.0, 4.0]
    ((x, y),) = ed.DataLoader(found, 2)
    assert x.shape == (2, 2)
    assert y.tolist() == [0, 1]
    assert ed.load_hf_dataset(data)[0]["y"] == 0
    library.DatasetDict({"train": data}).save_to_disk(tmp_path / "two")
    with pytest.raises(DataError, match="split= one of 'train'"):
        ed.load_hf_dataset(tmp_path / "two")
    assert len(ed.load_hf_dataset(tmp_path / "two", "train")) == 2
    with pytest.raises(DataError, match="save_to_disk"):
        ed.load_hf_dataset("squad")
