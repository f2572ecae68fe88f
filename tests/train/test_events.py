"""Event files: bytes as TensorBoard's own writer makes them; read by our reader and by TensorBoard, if installed."""

from __future__ import annotations

import struct
import sys
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import EshkolError
from eshkol.train import events, wire
from eshkol.train.events import EventWriter, Histogram, Image, Unknown, read_events, read_scalars
from eshkol.train.records import crc32c, framed, masked

# What TensorBoard 2.21's RecordWriter and protocol buffers write for the calls of `small_file`.
GOLDEN = bytes.fromhex("""
1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c1a00000000000000129b
d82d09000000000000004010032a0d0a0b0a046c6f7373150000003fbac36b9419000000000000008bf10828090000000000
00044010ac022a0b0a090a02c3a91500000000b15046c26e00000000000000c4bf336409000000000000084010ffffffffff
ffffffff012a580a560a01772a510911ea2d819997613d1111ea2d819997613d1900000000000000402111ea2d819997713d
29a78ea899c257e33a3210000000000000000011ea2d819997713d3a1000000000000000000000000000000040bd2804cc2a
00000000000000ae8d91f5090000000000000c4010042a1d0a1b0a0174420c0807120412020801420268694a080a060a0474
6578743e585646
""")


def small_file(folder: Path) -> Path:
    with EventWriter(folder, wall_time=1.5) as writer:
        writer.add_scalar("loss", 0.5, 3, wall_time=2.0)
        writer.add_scalar("é", 0, 300, wall_time=2.5)
        writer.add_histogram("w", [5e-13, 5e-13], -1, wall_time=3.0)
        writer.add_text("t", "hi", 4, wall_time=3.5)
    return writer.path


def only_value(path: Path) -> object:
    (value,) = (value for event in read_events(path) for value in event.values.values())
    return value


# --- bytes ------------------------------------------------------------------------------------------


def test_a_file_is_what_tensorboard_writes(tmp_path):
    path = small_file(tmp_path)
    assert path.read_bytes() == GOLDEN
    assert path.name.startswith("events.out.tfevents.0000000001.")


def test_crc32c_of_known_texts():
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the catalogue of CRCs
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def crc_bit_by_bit(data: bytes) -> int:
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [255, 256, 2303, 2304, 2305, 5000, 8192])
def test_crc32c_of_long_texts_goes_in_lanes(size):
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == crc_bit_by_bit(data)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_integers_come_back(number):
    assert wire.read_integer(wire.parse(wire.integer(5, number)), 5) == number


def test_varints_are_those_of_the_specification():
    assert wire.varint(300) == b"\xac\x02"
    assert len(wire.varint(-1)) == 10


@pytest.mark.parametrize(
    "message", [b"\x08", b"\x08" + b"\xff" * 11, b"\x0a\x05ab", b"\x09abc", b"\x0b", b"\x15\x00\x00"]
)
def test_a_broken_message_is_refused(message):
    with pytest.raises(EshkolError, match="message"):
        wire.parse(message)


# --- what is written is read --------------------------------------------------------------------------


def test_events_come_back(tmp_path):
    version, loss, other, spread, text = read_events(small_file(tmp_path))
    assert (version.file_version, version.wall_time, version.values) == ("brain.Event:2", 1.5, {})
    assert (loss.step, loss.wall_time, loss.values) == (3, 2.0, {"loss": 0.5})
    assert (other.step, other.values) == (300, {"é": 0.0})
    assert (spread.step, text.values) == (-1, {"t": "hi"})


@pytest.mark.parametrize("value", [1, 0.25, True, np.float64(2.5), np.int8(-3), np.array([[7.0]]), float("inf"), -0.0])
def test_scalars_of_every_kind(tmp_path, value):
    with EventWriter(tmp_path) as writer:
        writer.add_scalar("x", value, 1)
    assert struct.pack("<f", only_value(writer.path)) == struct.pack("<f", np.asarray(value).item())


def test_scalars_are_float32_and_nan_is_kept(tmp_path):
    with EventWriter(tmp_path) as writer:
        for step, value in enumerate([0.1, 1e300, float("nan")]):
            writer.add_scalar("x", value, step)
    tenth, large, nan = (value for _, value in read_scalars(tmp_path)["x"])
    assert tenth == float(np.float32(0.1))
    assert large == float("inf")
    assert np.isnan(nan)


def test_tensors_are_taken(tmp_path):
    with ek.use_backend("reference"), EventWriter(tmp_path) as writer:
        writer.add_scalar("x", ek.tensor([1.5, 2.0]).sum(), np.int64(1))
        writer.add_scalar("half", ek.tensor(0.5, dtype=ek.bfloat16), 2)
        writer.add_histogram("w", ek.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=ek.bfloat16), 1)
        writer.add_image("p", ek.tensor(np.zeros((3, 4, 5))), 1)
    values = {tag: value for event in read_events(tmp_path) for tag, value in event.values.items()}
    assert (values["x"], values["half"]) == (3.5, 0.5)
    assert (values["w"].count, values["w"].sum) == (4.0, 10.0)
    assert (values["p"].height, values["p"].width, values["p"].channels) == (4, 5, 3)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).normal(size=300),
        np.array([0.0]),
        np.array([-1e-13, 0.0, 1e-13]),
        np.array([1e25, -1e25]),
        np.array([sys.float_info.max]),
        np.array([-sys.float_info.max]),
        np.array([1.0, 1.0]),
        np.arange(-5, 6),
    ],
)
def test_histograms_count_every_value_in_its_bucket(tmp_path, values):
    with EventWriter(tmp_path) as writer:
        writer.add_histogram("w", values, 1)
    found = only_value(writer.path)
    assert isinstance(found, Histogram)
    lower = [-float("inf"), *found.limits[:-1]]
    last = found.limits[-1] == sys.float_info.max  # the last bucket of all has its limit in it
    for place, (low, high, count) in enumerate(zip(lower, found.limits, found.counts, strict=True)):
        within = (values >= low) & ((values < high) | (last and place == len(lower) - 1))
        assert within.sum() == count
    assert sum(found.counts) == found.count == values.size
    assert (found.minimum, found.maximum) == (values.min(), values.max())
    assert found.sum == pytest.approx(values.astype(float).sum())
    assert found.limits == sorted(found.limits)


def test_the_buckets_are_those_of_tensorflow():
    limits = events._LIMITS_OF_BUCKETS
    assert len(limits) == 1551  # 774 and DBL_MAX on each side of 0, as in TensorFlow's histogram.cc
    positive = limits[limits > 0]
    assert positive[0] == 1e-12
    np.testing.assert_allclose(positive[1:-1] / positive[:-2], 1.1)
    assert positive[-2] < 1e20 <= positive[-2] * 1.1
    np.testing.assert_array_equal(limits, -limits[::-1])


def decoded(png: bytes) -> np.ndarray:
    """The samples of a PNG whose rows are all differences to those above: a reader of its own."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, body = 8, b""
    while place < len(png):
        (size,) = struct.unpack_from(">I", png, place)
        kind, data = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        assert struct.unpack_from(">I", png, place + 8 + size)[0] == zlib.crc32(kind + data)
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", data[:10])
        body += data if kind == b"IDAT" else b""
        place += 12 + size
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 2).all()
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    return np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, channels)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (3, 5, 7), (1, 5, 7), (4, 5, 7)])
def test_images_of_every_layout(tmp_path, shape):
    picture = np.random.default_rng(2).integers(0, 256, shape, np.uint8)
    with EventWriter(tmp_path) as writer:
        writer.add_image("p", picture, 1)
    found = only_value(writer.path)
    assert isinstance(found, Image)
    wanted = picture[:, :, None] if len(shape) == 2 else picture.transpose(1, 2, 0) if shape[2] == 7 else picture
    assert (found.height, found.width, found.channels) == wanted.shape
    np.testing.assert_array_equal(decoded(found.encoded), wanted)


def test_images_of_floats_and_bools(tmp_path):
    with EventWriter(tmp_path) as writer:
        writer.add_image("p", [[0.0, 0.5, 1.0]], 1)
        writer.add_image("q", [[False, True]], 1)
        writer.add_image("r", np.zeros((2, 3, 2)), 1, layout="HWC")
    first, second, third = (decoded(event.values.popitem()[1].encoded) for event in read_events(tmp_path)[1:])
    assert first.reshape(-1).tolist() == [0, 128, 255]
    assert second.reshape(-1).tolist() == [0, 255]
    assert third.shape == (2, 3, 2)


def test_pillow_reads_the_pictures(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(3).integers(0, 256, (6, 4, 3), np.uint8)
    with EventWriter(tmp_path) as writer:
        writer.add_image("p", picture, 1)
    np.testing.assert_array_equal(np.asarray(pillow.open(BytesIO(only_value(writer.path).encoded))), picture)


# --- the writer ---------------------------------------------------------------------------------------


def test_what_is_flushed_can_be_read_while_the_writer_writes(tmp_path):
    with EventWriter(tmp_path / "a" / "b") as writer:
        writer.add_scalar("x", 1.0, 1)
        writer.flush()
        assert read_scalars(writer.path) == {"x": [(1, 1.0)]}
    with EventWriter(tmp_path / "c", flush_seconds=0) as writer:
        writer.add_scalar("x", 1.0, 1)
        assert read_scalars(writer.path) == {"x": [(1, 1.0)]}


def test_a_closed_writer_says_so(tmp_path):
    writer = EventWriter(tmp_path)
    writer.close()
    writer.close()
    writer.flush()
    assert "closed" in repr(writer)
    with pytest.raises(EshkolError, match=r"add_scalar: the writer of .* is closed"):
        writer.add_scalar("x", 1.0, 1)


def test_a_run_that_goes_on_hides_what_it_does_again(tmp_path):
    with EventWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_scalar("x", step, step)
    with EventWriter(tmp_path, purge_step=3) as writer:
        writer.add_scalar("x", 30, 3)
    assert read_scalars(tmp_path) == {"x": [(0, 0.0), (1, 1.0), (2, 2.0), (3, 30.0)]}


def test_writers_of_one_second_have_files_of_their_own(tmp_path):
    paths = []
    for number in range(12):  # more than nine: files are read in the order of numbers, not of digits
        with EventWriter(tmp_path, wall_time=5.0) as writer:
            writer.add_scalar("x", number, number)
        paths.append(writer.path)
    assert len(set(paths)) == 12
    assert [step for step, _ in read_scalars(tmp_path)["x"]] == list(range(12))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.add_scalar("", 1.0, 1), "add_scalar: a name, which is a string, is wanted as the tag, not ''"),
        (lambda w: w.add_scalar(3, 1.0, 1), "is wanted as the tag, not 3"),
        (lambda w: w.add_scalar("x", 1.0, 1.5), "add_scalar: an integer is wanted as the step, not 1.5"),
        (lambda w: w.add_scalar("x", 1.0, 2**63), "does not fit 64 bits"),
        (lambda w: w.add_scalar("x", "1.0", 1), "add_scalar: real numbers are wanted"),
        (lambda w: w.add_scalar("x", None, 1), "add_scalar: real numbers are wanted"),
        (lambda w: w.add_scalar("x", 1j, 1), "add_scalar: real numbers are wanted, not complex128"),
        (lambda w: w.add_scalar("x", [1.0, 2.0], 1), r"one number is wanted, not a tensor of shape \[2\]"),
        (lambda w: w.add_scalar("\ud800", 1.0, 1), "cannot be written as UTF-8"),
        (lambda w: w.add_histogram("w", [], 1), "add_histogram: 'w' has no values"),
        (lambda w: w.add_histogram("w", [1.0, float("nan")], 1), "1 of the 2 values of 'w' are NaN or infinite"),
        (lambda w: w.add_histogram("w", ["a"], 1), "add_histogram: real numbers are wanted"),
        (lambda w: w.add_image("p", np.zeros(3), 1), "add_image: it cannot be told which axis"),
        (lambda w: w.add_image("p", np.zeros((3, 3, 3)), 1), r"(?s)it cannot be told.*layout=.HWC."),
        (lambda w: w.add_image("p", np.zeros((5, 6, 7)), 1), r"of 'p' with shape \[5, 6, 7\]"),
        (lambda w: w.add_image("p", np.zeros((5, 6, 7)), 1, layout="HWC"), "5 × 6 with 7 channels"),
        (lambda w: w.add_image("p", np.zeros((0, 6)), 1), "0 × 6"),
        (lambda w: w.add_image("p", np.zeros((5, 6)), 1, layout="CHW"), r"shape \[5, 6\], which is not CHW"),
        (lambda w: w.add_image("p", np.zeros((5, 6)), 1, layout="WH"), "there is no layout 'WH'"),
        (lambda w: w.add_image("p", np.full((2, 2), 255.0), 1), "those of 'p' are from 255 to 255"),
        (lambda w: w.add_image("p", np.full((2, 2), np.nan), 1), "are from nan to nan"),
        (lambda w: w.add_image("p", np.zeros((2, 2), np.int64), 1), "'p' is of int64"),
        (lambda w: w.add_text("t", 3, 1), "add_text: a string is wanted as the text, not a int"),
    ],
)
def test_misuse_is_told(tmp_path, call, message):
    with EventWriter(tmp_path) as writer:
        before = writer.path.read_bytes()
        with pytest.raises(EshkolError, match=message):
            call(writer)
    assert writer.path.read_bytes() == before  # nothing half-written


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EshkolError, match="EventWriter: cannot write into"):
        EventWriter(tmp_path / "file")


def test_a_full_disk_is_told(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    writer = EventWriter(tmp_path)
    writer._file.close()
    writer._file = open("/dev/full", "wb")  # noqa: SIM115
    writer.add_scalar("x", 1.0, 1)
    with pytest.raises(EshkolError, match=r"EventWriter: cannot write .*: no space left on device"):
        writer.flush()
    with pytest.raises(EshkolError, match="no space left"):
        writer.close()


# --- damaged files ------------------------------------------------------------------------------------


def test_every_damaged_byte_is_found(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    for place in range(0, len(GOLDEN), 3):
        spoiled = bytearray(GOLDEN)
        spoiled[place] ^= 0x10
        path.write_bytes(spoiled)
        with pytest.raises(EshkolError, match=r"read_events: .* is corrupt at byte \d+"):
            read_events(path)


def test_a_file_that_is_cut_off_is_read_to_there(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    ends, place = [0], 0
    while place < len(GOLDEN):
        place += 16 + struct.unpack_from("<Q", GOLDEN, place)[0]
        ends.append(place)
    for size in sorted({*range(0, len(GOLDEN), 3), *ends}):
        path.write_bytes(GOLDEN[:size])
        whole = max(number for number, end in enumerate(ends) if end <= size)
        if size in ends:
            assert len(read_events(path)) == whole
        else:
            with pytest.warns(UserWarning, match=f"cut off within the record at byte {ends[whole]}"):
                assert len(read_events(path)) == whole


def test_what_is_not_there_or_not_an_event(tmp_path):
    with pytest.raises(EshkolError, match=r"read_events: cannot read .*: no such file"):
        read_events(tmp_path / "none")
    with pytest.raises(EshkolError, match="has no event files"):
        read_events(tmp_path)
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(framed(b"\x0b\x0b"))
    with pytest.raises(EshkolError, match=r"record 0 of .* is no event"):
        read_events(path)


def test_values_of_other_kinds_are_kept_as_they_are(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    value = wire.text(1, "audio") + wire.data(6, b"abc")
    path.write_bytes(framed(wire.data(5, wire.data(1, value))))
    assert only_value(path) == Unknown(value)


def test_checksums_are_masked():
    assert masked(struct.pack("<Q", 24)) == struct.unpack_from("<I", GOLDEN, 8)[0]


# --- TensorBoard ----------------------------------------------------------------------------------------


def test_tensorboard_reads_everything(tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    values = np.random.default_rng(4).normal(size=1000)
    picture = np.random.default_rng(5).integers(0, 256, (64, 48, 3), np.uint8)
    with EventWriter(tmp_path) as writer:
        for step in range(100):
            writer.add_scalar("loss", 1 / (step + 1), step, wall_time=1000.0 + step)
        writer.add_histogram("weights", values, 7)
        writer.add_image("picture", picture, 8)
        writer.add_text("notes", "# Größe", 9)
    with EventWriter(tmp_path, purge_step=90) as again:
        again.add_scalar("loss", 5.0, 90)
    found = accumulators.EventAccumulator(
        str(tmp_path), size_guidance=dict.fromkeys(accumulators.DEFAULT_SIZE_GUIDANCE, 0)
    )
    found.Reload()
    scalars = found.Scalars("loss")
    assert [event.step for event in scalars] == list(range(91))
    assert [event.value for event in scalars[:90]] == [float(np.float32(1 / (step + 1))) for step in range(90)]
    assert scalars[3].wall_time == 1003.0
    (spread,) = found.Histograms("weights")
    ours = events.histogram(values)
    assert (spread.step, spread.histogram_value.num) == (7, 1000)
    assert list(spread.histogram_value.bucket_limit) == ours.limits
    assert list(spread.histogram_value.bucket) == ours.counts
    assert spread.histogram_value.sum == ours.sum
    (image,) = found.Images("picture")
    assert (image.step, image.height, image.width) == (8, 64, 48)
    np.testing.assert_array_equal(decoded(image.encoded_image_string), picture)
    (text,) = found.Tensors("notes")
    assert (text.step, text.tensor_proto.string_val[0].decode()) == (9, "# Größe")
    assert found.SummaryMetadata("notes").plugin_data.plugin_name == "text"


def test_the_histograms_are_those_of_torch(tmp_path):
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    from torch.utils.tensorboard.summary import histogram as theirs
    from torch.utils.tensorboard.writer import SummaryWriter

    values = np.random.default_rng(6).normal(size=500)
    with SummaryWriter(str(tmp_path)) as writer:
        bins = writer.default_bins
    other = theirs("w", values, bins).value[0].histo
    ours = events.histogram(values)
    assert list(other.bucket) == ours.counts
    np.testing.assert_allclose(list(other.bucket_limit), ours.limits, rtol=1e-15)
    assert (other.min, other.max, other.num) == (ours.minimum, ours.maximum, ours.count)
    assert (other.sum, other.sum_squares) == pytest.approx((ours.sum, ours.sum_of_squares))


def test_torch_files_are_read(tmp_path):
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    from torch.utils.tensorboard.writer import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 0.25, 3)
        writer.add_text("note", "hello", 4)
        writer.add_image("p", np.zeros((3, 4, 5), np.uint8), 5)
    values = {tag: value for event in read_events(tmp_path) for tag, value in event.values.items()}
    assert values["loss"] == 0.25
    assert values["note/text_summary"] == "hello"
    assert (values["p"].height, values["p"].width) == (4, 5)
