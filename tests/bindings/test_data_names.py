"""Data and checkpoints under the names of Scheme: every name is called, with the Python call as the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import EshkolError
from eshkol.io.checkpoint import load_checkpoint, load_tensors

DATA = (
    "make-dataset dataset-size dataset-get-item dataset-slice make-dataloader make-data-loader dataloader-next "
    "dataloader-length dataloader-reset for-each-batch normalize standardize random-crop random-flip random-rotation "
    "load-mnist load-cifar10 load-imagenet load-csv load-images load-parquet load-hf-dataset"
)
CHECKPOINTS = (
    "save-checkpoint load-checkpoint checkpoint-model checkpoint-optimizer checkpoint-get save-tensors make-metadata "
    "serialize deserialize"
)


@pytest.fixture(autouse=True, scope="module")
def reference() -> Any:
    with ek.use_backend("reference"):
        ek.eval("(define flowers (make-dataset '((1.0 2.0) (3.0 4.0) (5.0 9.0)) '(0 1 1)))")
        yield


@pytest.mark.parametrize("name", [*DATA.split(), *CHECKPOINTS.split()])
def test_the_name_is_there_and_says_what_it_does(name):
    assert callable(ek.lang[name])
    assert ek.eval(f"(procedure-doc {name})") or ek.eval(f"(procedure-signature {name})")


# ---- data ------------------------------------------------------------------------------------------------------------


def listed(batch: Any) -> Any:
    return [part.tolist() if isinstance(part, ek.Tensor) else part for part in batch]


def test_data_sets():
    assert ek.eval("(dataset-size flowers)") == 3
    assert listed(ek.eval("(dataset-get-item flowers 1)")) == [[3.0, 4.0], 1]
    assert listed(ek.eval("(dataset-get-item (dataset-slice flowers 1 3) 1)")) == [[5.0, 9.0], 1]
    assert ek.eval("(dataset-get-item (make-dataset '(5 6 7)) 2)") == 7
    assert ek.eval("(dataset-classes (load-table 'iris))") == ["setosa", "versicolor", "virginica"]


def test_loaders_give_what_pythons_give():
    ek.eval("(define loader (make-dataloader flowers 2 #t 0 :seed 3))")
    assert ek.eval("(dataloader-length loader)") == 2
    assert ek.eval("(dataloader-length (make-dataloader flowers 2 :drop-last #t))") == 1
    ours = [ek.eval("(dataloader-next loader)") for _ in range(3)]
    assert ours.pop() is False
    data = ek.data.ArrayDataset(np.array([[1, 2], [3, 4], [5, 9]], np.float32), np.array([0, 1, 1]))
    theirs = list(ek.data.DataLoader(data, 2, shuffle=True, seed=3))
    assert list(map(listed, ours)) == list(map(listed, theirs))
    first = listed(ek.eval("(dataloader-next loader)"))  # another epoch
    ek.eval("(dataloader-reset loader)")
    assert listed(ek.eval("(dataloader-next loader)")) == first
    collected = ek.eval("""(let ((all '()))
      (for-each-batch (lambda (batch) (set! all (cons (tensor->list (cadr batch)) all)))
                      (make-data-loader flowers 2 #f))
      (reverse all))""")
    assert collected == [[0, 1], [1]]
    assert ek.eval("(let ((n 0)) (for-each-batch (lambda (b) (set! n (+ n 1))) (list 1 2 3)) n)") == 3


def test_a_loader_trains():
    ek.eval("(define line (linear 2 1))")
    text = "(train-epoch line (optimizer-sgd (model-parameters line) :lr 0.0) mse {} :jit #f)"
    ek.eval("(define pairs (make-dataset '((1.0 2.0) (3.0 4.0)) '((1.0) (2.0))))")
    whole = ek.eval(text.format("(list (list (tensor (1.0 2.0) (3.0 4.0)) (tensor (1.0) (2.0))))"))
    assert ek.eval(text.format("(make-dataloader pairs 2)")) == pytest.approx(whole, rel=1e-6)


def test_normalizing():
    assert ek.eval("(normalize (tensor (1.0 2.0) (3.0 4.0)) 1.0 2.0)").tolist() == [[0.0, 0.5], [1.0, 1.5]]
    assert ek.eval("(normalize '((1.0 2.0) (3.0 4.0)) '(1.0 2.0) '(1.0 2.0))").tolist() == [[0.0, 0.0], [2.0, 1.0]]
    image = ek.eval("(normalize (ones '(5 3 2 2)) '(0.0 1.0 2.0) '(1.0 1.0 1.0))").numpy()
    assert image[4, :, 1, 1].tolist() == [1.0, 0.0, -1.0]
    x = np.array([[1, 2], [3, 4], [5, 9]], np.float32)
    expected = (x - x.mean(0)) / x.std(0)
    np.testing.assert_allclose(ek.lang.standardize(ek.tensor(x)).numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ek.eval("(dataset-get-item (standardize flowers) 2)")[0].numpy(), expected[2], rtol=1e-5)
    np.testing.assert_allclose(ek.eval("(dataset-get-item (normalize flowers 1.0 2.0) 2)")[0].numpy(), [2.0, 4.0])
    with pytest.raises(EshkolError, match="2 numbers for 3 features"):
        ek.eval("(normalize (ones '(4 3)) '(1.0 2.0) 1.0)")


def test_random_transforms_are_those_of_python():
    image = ek.tensor(np.arange(16, dtype=np.float32).reshape(1, 4, 4))
    calls = {
        "random-crop": (lambda f: f(image, 2), lambda: ek.data.RandomCrop(2)(image)),
        "random-flip": (lambda f: f(image, 2), lambda: ek.data.RandomFlip(axis=-1)(image)),
        "random-rotation": (lambda f: f(image, 30), lambda: ek.data.RandomRotation(30)(image)),
    }
    for name, (ours, theirs) in calls.items():
        for seed in range(4):
            ek.seed(seed)
            found = ours(ek.lang[name])
            ek.seed(seed)
            assert found.tolist() == theirs().tolist(), name


def test_what_comes_with_the_package():
    assert ek.eval("(map dataset-size (load-digits 'train 'test))") == [1437, 360]
    assert ek.eval("(tensor-shape (car (dataset-get-item (load-digits 'test :flat #t) 0)))") == [64]
    assert ek.eval("(dataset-size (load-table 'wine))") == 178
    assert ek.eval("(string-length (load-text))") == len(ek.data.text())


def test_readers_read(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,kind\n1,2.5,x\n3,4.5,y\n")
    assert ek.lang.table_column(ek.lang.load_csv(str(table), True), "b").tolist() == [2.5, 4.5]
    assert listed(ek.lang.dataset_get_item(ek.lang.load_csv(str(table), True, target="kind"), 1)) == [[3.0, 4.5], 1]
    table.write_text("a,b,kind\n1,2.5,x\n,4.5,y\n7\n")
    read = ek.eval("(lambda (file) (load-csv file #t :fill '((a . 5)) :dtypes '((b . text)) :on-error 'skip))")
    with pytest.warns(ek.data.SkippedData, match="line 4: 1 cells"):
        found = read(str(table))
    assert ek.lang.table_column(found, "a").tolist() == [1, 5]
    batch = ek.lang.dataloader_next(ek.lang.make_dataloader(found, 2))
    assert (batch["a"].tolist(), batch["b"], batch["kind"]) == ([1, 5], ["2.5", "4.5"], ["x", "y"])
    images, labels = np.arange(8, dtype=np.uint8).reshape(2, 2, 2), np.array([3, 4], np.uint8)
    for split in ("train", "t10k"):
        (tmp_path / f"{split}-images-idx3-ubyte").write_bytes(
            b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in images.shape) + images.tobytes()
        )
        (tmp_path / f"{split}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x02" + labels.tobytes())
    both = ek.lang.load_mnist(ek.lang.Symbol("train"), ek.lang.Symbol("test"), root=str(tmp_path))
    assert [len(data) for data in both] == [2, 2]
    assert ek.lang.dataset_get_item(ek.lang.load_mnist(str(tmp_path)), 1)[1] == 4
    record = bytes([7]) + bytes(3072)
    (tmp_path / "test_batch.bin").write_bytes(record * 3)
    assert len(ek.lang.load_cifar10(ek.lang.Symbol("test"), root=str(tmp_path))) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('(load-mnist \'train :root "/nowhere")', "/nowhere"),
        ('(load-cifar10 :root "/nowhere")', "/nowhere"),
        ('(load-imagenet "/nowhere")', "there is no folder"),
        ('(load-images "/nowhere")', "load-images: there is no folder"),
        ('(load-text "/nowhere.txt")', "there is no file /nowhere.txt.*\n.*put the file there"),
        ("(load-cifar10)", "give :root FOLDER, or set ESHKOL_DATA"),
        ("(make-dataloader flowers 2 #f 1 :worker 'fiber)", "worker is one of 'thread', 'process', not 'fiber'"),
        ('(load-csv "/nowhere.csv" #t :fill 0)', "fill is said by column"),
        ('(load-csv "/nowhere.csv")', "there is no file"),
        ('(load-parquet "/nowhere.parquet")', "/nowhere|load-parquet needs"),
        ('(load-hf-dataset "/nowhere")', "/nowhere|load-hf-dataset needs"),
        ('(load-mnist \'validation :root ".")', "validation"),
        ("(load-table 'roses)", "iris, wine"),
        ("(dataset-get-item flowers 3)", "an index from 0 to 2"),
        ("(dataset-slice flowers 2 1)", "no part of 3 samples"),
        ("(dataset-size 5)", "a data set is wanted"),
        ("(make-dataset '(1 2) '(1 2 3))", "different lengths"),
        ("(dataloader-next flowers)", "a data loader is wanted"),
        ("(dataloader-length flowers)", "a data loader is wanted"),
        ("(for-each-batch car 5)", "a data loader, or a list of batches"),
        ("(make-dataloader flowers 0)", "batch_size|batch-size"),
    ],
)
def test_misuse_is_told(text, why, monkeypatch):
    monkeypatch.delenv("ESHKOL_DATA", raising=False)
    with pytest.raises(EshkolError, match=why):
        ek.eval(text)


def test_tokenizers():
    ek.eval('(define letters (make-tokenizer \'char "abc abd"))')
    assert ek.eval("(tokenizer-size letters)") == 5
    assert ek.eval('(tokenizer-decode letters (tokenizer-encode letters "dab"))') == "dab"
    assert ek.eval("(tokenizer-size (make-tokenizer 'byte))") == 256
    assert ek.eval("(tokenizer-decode (make-tokenizer 'bpe \"aa ab aa ab\" 258) '(97))") == "a"
    blocks = ek.eval('(dataset-get-item (make-text-blocks (tokenizer-encode letters "abcd") 2) 0)')
    assert [part.tolist() for part in blocks] == [[1, 2], [2, 3]]
    with pytest.raises(EshkolError, match="no kind"):
        ek.eval("(make-tokenizer 'word)")


# ---- checkpoints -----------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path) -> Path:
    ek.eval("(rng-seed 1) (define net (linear 2 1)) (define adam (optimizer-adam (model-parameters net) :lr 0.01))")
    ek.eval("(train-step net adam mse (tensor (1.0 2.0)) (tensor (1.0)) :jit #f)")
    file = tmp_path / "net.eskpt"
    save = ek.eval(
        "(lambda (file) (save-checkpoint net file :optimizer adam :step 7 :metadata '((lr . 0.1) (kind . a))))"
    )
    save(str(file))
    return file


def test_a_model_comes_back(saved):
    checkpoint = ek.lang.load_checkpoint(str(saved))
    other = ek.eval("(linear 2 1)")
    assert ek.lang.checkpoint_model(checkpoint, other) is other
    assert other.weight.tolist() == ek.eval("net").weight.tolist()
    assert ek.lang.checkpoint_get(checkpoint, ek.lang.Symbol("model"))["bias"].tolist() == other.bias.tolist()
    optimizer = ek.lang.optimizer_adam(other, lr=0.5)
    assert ek.lang.checkpoint_optimizer(checkpoint, optimizer) is optimizer
    assert optimizer.state_dict()["param_groups"][0]["lr"] == 0.01
    assert [ek.lang.checkpoint_get(checkpoint, ek.lang.Symbol(k)) for k in ("step", "lr", "kind")] == [7, 0.1, "a"]
    assert ek.lang.checkpoint_get(checkpoint, "weight").tolist() == other.weight.tolist()
    assert ek.lang.checkpoint_get(checkpoint, "epoch", 5) == 5
    assert set(ek.lang.checkpoint_names(checkpoint)) >= {"weight", "bias"}
    mapped = ek.lang.load_checkpoint(str(saved), mmap=True)
    assert ek.lang.checkpoint_model(mapped).weight.tolist() == other.weight.tolist()


RESUMED = """
(lambda (file)
  (define checkpoint (load-checkpoint file))
  (define model (checkpoint-model checkpoint))
  (define optimizer (checkpoint-optimizer checkpoint))
  (define step (checkpoint-get checkpoint 'step))
  (for-each (lambda (network adam) (train-step network adam mse (tensor (1.0 2.0)) (tensor (1.0)) :jit #f))
            (list net model) (list the-adam optimizer))
  (list step (model (tensor (1.0 2.0))) (net (tensor (1.0 2.0)))))
"""


def test_model_and_optimizer_are_made_from_the_file_alone(saved):
    ek.eval("(define the-adam adam)")
    step, found, wanted = ek.eval(RESUMED)(str(saved))
    assert step == 7
    assert found.tolist() == wanted.tolist()
    checkpoint = ek.lang.load_checkpoint(str(saved))
    assert ek.lang.checkpoint_model(checkpoint) is ek.lang.checkpoint_model(checkpoint)
    tensors = ek.lang.checkpoint_optimizer(checkpoint).tensors
    assert [id(t) for t in tensors] == [id(t) for t in ek.lang.checkpoint_model(checkpoint).parameters()]


def test_random_numbers_go_on_with_the_optimizer(saved):
    load_checkpoint(saved).restore(rng=True)
    wanted = ek.rand(3).tolist()
    ek.seed(9)
    ek.lang.checkpoint_optimizer(ek.lang.load_checkpoint(str(saved)))
    assert ek.rand(3).tolist() == wanted


def test_a_model_of_ones_own_is_made_by_oneself(tmp_path):
    file = str(tmp_path / "own.eskpt")
    ek.eval("(define-model Own () (define part (linear 2 1)) (lambda (x) (part x)))")
    ek.eval("(lambda (file) (save-checkpoint (Own) file))")(file)
    checkpoint = ek.lang.load_checkpoint(file)
    with pytest.raises(
        EshkolError, match=r"it is of class Own, which a file does not know(?s:.*)make the model yourself"
    ):
        ek.lang.checkpoint_model(checkpoint)
    own = ek.eval("(Own)")
    assert ek.lang.checkpoint_model(checkpoint, own) is own


def test_python_reads_what_scheme_saves(saved):
    checkpoint = load_checkpoint(saved)
    assert (checkpoint.step, checkpoint.metadata) == (7, {"lr": 0.1, "kind": "a"})


def test_everything_is_restored_at_once(saved):
    other = ek.eval("(linear 2 1)")
    adam = ek.lang.optimizer_adam(other, lr=0.5)
    ek.lang["restore-checkpoint!"](ek.lang.load_checkpoint(str(saved)), model=other, optimizer=adam)
    assert other.weight.tolist() == ek.eval("net").weight.tolist()
    assert adam.state_dict()["param_groups"][0]["lr"] == 0.01


FITTED = """
(lambda (path resume beside)
  (rng-seed 1)
  (define model (sequential (linear 2 3) (relu) (linear 3 1)))
  (define (trained resume)
    (fit model (cons (ones '(6 2)) (ones '(6 1))) :optimizer (optimizer-sgd (model-parameters model) :lr 0.1)
         :criterion mse :epochs 3 :batch-size 2 :seed 3 :quiet #t :jit #f
         :callbacks (list (save-checkpoints path :every-steps 1 :beside beside :monitor "loss")) :resume resume))
  (history-ref (if resume (trained resume) (trained #f)) "loss"))
"""


@pytest.mark.parametrize("beside", [False, True])
def test_a_run_of_scheme_is_saved_and_gone_on_with(beside, tmp_path):
    fitted = ek.eval(FITTED)
    whole = fitted(str(tmp_path / "runs" / "{kind}-{epoch}.eskpt"), False, beside)
    assert len(whole) == 3
    again = fitted(str(tmp_path / "again" / "{kind}.eskpt"), str(tmp_path / "runs" / "last-1.eskpt"), beside)
    assert again == whole
    checkpoint = ek.lang.load_checkpoint(str(tmp_path / "again" / "last.eskpt"))
    assert ek.lang.checkpoint_get(checkpoint, "epoch") == 3
    assert [type(part).__name__ for part in ek.lang.checkpoint_model(checkpoint)] == ["Linear", "ReLU", "Linear"]


def test_states_and_tensors(tmp_path):
    file = str(tmp_path / "a.eskpt")
    save = ek.eval("(lambda (file) (save-checkpoint (model-state (linear 2 1)) file 3))")
    save(file)
    assert ek.lang.checkpoint_get(ek.lang.load_checkpoint(file), "epoch") == 3
    save = ek.eval("""(lambda (file) (save-checkpoint file (list (cons "a.w" (ones '(2))) (cons "a.b" (zeros '(1))))
                                       (make-metadata "test" 1 100 0.05 :more 'yes)))""")
    save(file)
    pairs = ek.lang.load_checkpoint(file)
    assert [(p.car, p.cdr.tolist()) for p in pairs] == [("a.w", [1.0, 1.0]), ("a.b", [0.0])]
    assert ek.lang["assoc-ref"](pairs, "a.b").tolist() == [0.0]
    whole = ek.lang.load_checkpoint(file, whole=True)
    assert [ek.lang.checkpoint_get(whole, k) for k in ("name", "epoch", "step", "loss", "more")] == [
        "test", 1, 100, 0.05, "yes",
    ]  # fmt: skip
    assert [p.car for p in ek.lang.load_checkpoint(file, names="*.b")] == ["a.b"]
    save = ek.eval("(lambda (file) (save-tensors (list (cons 'w (ones '(2)))) file))")
    save(file)
    assert load_tensors(file)["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(save-checkpoint (linear 2 1))", "the path of the file is missing"),
        ('(save-checkpoint 5 "x.eskpt")', "a model is wanted, or tensors by name"),
        ('(save-tensors \'((w . 1)) "x.eskpt")', "a tensor is wanted"),
        ('(save-tensors \'((w . never-defined)) "x.eskpt")', "this variable has no definition: never-defined"),
        ("(apply save-tensors '((w . x)) '(\"x.eskpt\"))", "a tensor is wanted"),
        ('(load-checkpoint "/nowhere.eskpt")', "nowhere.eskpt"),
        ("(checkpoint-model 5)", "a checkpoint is wanted"),
        ("(checkpoint-get 5 'step)", "a checkpoint is wanted"),
        ("(save-checkpoints 5)", "the path of files is wanted"),
        ('(save-checkpoints "{kind}" :evry 2)', "evry"),
        ("(make-metadata 1 2 3 4 5)", "name, epoch, step and loss"),
    ],
)
def test_misuse_of_checkpoints_is_told(text, why):
    with pytest.raises(EshkolError, match=why):
        ek.eval(text)


def test_what_is_missing_is_named(saved):
    with pytest.raises(EshkolError, match="has no what"):
        ek.lang.checkpoint_get(ek.lang.load_checkpoint(str(saved)), ek.lang.Symbol("what"))
