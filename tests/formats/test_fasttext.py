"""fastText model files: written with the same bytes, read with the same numbers, refused if damaged."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import fasttext
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses

import firth
from firth.formats.fasttext import FastTextFile, SparseRows, read_fasttext, write_fasttext
from firth.kernels.product import ProductCodes, quantize

NAMES = [
    "skipgram", "cbow_tree", "softmax", "whole_words", "labels", "labels_tree", "labels_ova",
    "codes", "codes_norms", "codes_pruned", "codes_few",
]  # fmt: skip
every_file = pytest.mark.parametrize("name", NAMES)


@every_file
def test_file_is_read_and_written_with_the_same_bytes(fasttext_files, tmp_path: Path, name: str):
    write_fasttext(tmp_path / "again", read_fasttext(fasttext_files[name]))
    assert (tmp_path / "again").read_bytes() == fasttext_files[name].read_bytes()


@pytest.mark.skipif("FIRTH_LID176" not in os.environ, reason="FIRTH_LID176 names lid.176.ftz where there is one")
def test_released_language_model_is_written_with_the_same_bytes(tmp_path: Path):
    path = Path(os.environ["FIRTH_LID176"])
    write_fasttext(tmp_path / "again", read_fasttext(path))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@every_file
def test_content_equals_that_of_fasttext(fasttext_files, name: str):
    file, theirs = read_fasttext(fasttext_files[name]), fasttext.load_model(str(fasttext_files[name]))
    words, counts = theirs.get_words(include_freq=True)
    assert [word.decode() for word in file.words] == words and file.word_counts.tolist() == counts.tolist()
    args = theirs.f.getArgs()
    for field in ("dim", "ws", "epoch", "minCount", "neg", "wordNgrams", "bucket", "minn", "maxn", "lrUpdateRate", "t"):
        assert getattr(file.args, field) == getattr(args, field)
    models = {"skipgram": "sg", "supervised": "sup", "cbow": "cbow"}
    assert (file.args.loss, file.args.model) == (args.loss.name, models[args.model.name])
    if file.labels:
        labels, counts = theirs.get_labels(include_freq=True)
        assert [label.decode() for label in file.labels] == labels and file.label_counts.tolist() == counts.tolist()
    if theirs.is_quantized():
        assert isinstance(file.inputs, ProductCodes)
        rows = np.stack([theirs.get_input_vector(row) for row in range(len(file.inputs))])
        np.testing.assert_allclose(file.inputs.dense(), rows, atol=1e-6)
    else:
        assert isinstance(file.inputs, np.ndarray) and isinstance(file.outputs, np.ndarray)
        assert np.array_equal(file.inputs, theirs.get_input_matrix())
        assert not file.inputs.flags.writeable and not file.inputs.flags.owndata  # mapped, not copied
        assert np.array_equal(file.outputs, theirs.get_output_matrix())


def check_written(path: Path, file: FastTextFile) -> None:
    write_fasttext(path, file)
    again = read_fasttext(path)
    assert again.args == file.args and list(again.words) == list(file.words) and again.tokens == file.tokens


def test_sparse_rows_are_written_block_by_block(fasttext_files, tmp_path: Path):
    file = read_fasttext(fasttext_files["skipgram"])
    assert isinstance(file.inputs, np.ndarray)
    words, row_ids = len(file.words), np.array([0, 5, 2999], dtype=np.int32)
    rows = np.arange(30, dtype=np.float32).reshape(3, 10)
    spread = SparseRows(file.inputs[:words], rows, row_ids, 3000)
    expected = np.zeros((words + 3000, 10), dtype=np.float32)
    expected[:words], expected[words + row_ids] = file.inputs[:words], rows
    assert np.array_equal(spread[:], expected) and np.array_equal(
        spread[words - 1 : words + 6], expected[words - 1 : words + 6]
    )
    check_written(tmp_path / "spread.bin", replace(file, inputs=spread))
    again = read_fasttext(tmp_path / "spread.bin").inputs
    assert isinstance(again, np.ndarray) and np.array_equal(again, expected)


def test_quantized_outputs_are_read_by_fasttext(fasttext_files, tmp_path: Path):
    file = read_fasttext(fasttext_files["labels"])
    coded = replace(file, inputs=quantize(np.array(file.inputs), norms=True), outputs=quantize(np.array(file.outputs)))
    check_written(tmp_path / "both.ftz", coded)
    labels, probabilities = fasttext.load_model(str(tmp_path / "both.ftz")).predict("the king sleeps", k=3)
    ours = firth.load(tmp_path / "both.ftz", firth.FastTextClassifier).predict(["the king sleeps"], k=3)[0]
    assert [f"__label__{label}" for label, _ in ours] == list(labels)
    assert [probability for _, probability in ours] == pytest.approx(list(probabilities), abs=1e-5)


def test_classifiers_of_version_11_have_no_character_ngrams(fasttext_files, tmp_path: Path):
    data = bytearray(fasttext_files["labels"].read_bytes())
    data[4:8] = struct.pack("<i", 11)
    (tmp_path / "old.bin").write_bytes(data)
    file = read_fasttext(tmp_path / "old.bin")
    assert file.version == 11 and file.args.maxn == 0


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"words": [b"with\0nul"]}, {"expected": "without NUL", "got": b"with\0nul"}),
        (
            {"tokens": 5, "inputs": np.zeros((3, 10), np.float32)},
            {"rule": "the input matrix must be", "got": (3, 10)},
        ),
        ({"outputs": np.zeros((3, 10), np.float32)}, {"rule": "the output matrix must be", "got": (3, 10)}),
        ({"pruned": np.zeros((0, 2), np.int32)}, {"rule": "the input matrix must be"}),
    ],
)
def test_invalid_models_are_not_written(fasttext_files, tmp_path: Path, change, values: dict[str, object]):
    file = read_fasttext(fasttext_files["skipgram"])
    if "words" in change:
        change = {"words": [*change["words"], *file.words[1:]]}
    with refuses("conflicting_options", **values):
        write_fasttext(tmp_path / "wrong.bin", replace(file, **change))
    assert not (tmp_path / "wrong.bin").exists()


ENTRIES = "the number of words plus labels must be at least 1 and equal"
HEADER = {
    "dim": 8, "ws": 12, "loss": 32, "model": 36, "bucket": 40, "minn": 44, "maxn": 48, "t": 56,
    "entries": 64, "words": 68, "labels": 72, "tokens": 76, "pruned": 84,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "field", "format", "value", "values"),
    [
        ("skipgram", "dim", "<i", 0, {"rule": "dim must be at least", "expected": 1, "got": 0}),
        ("skipgram", "dim", "<i", 11, {"rule": "the input matrix must be"}),
        ("skipgram", "loss", "<i", 9, {"rule": "loss must be one of", "got": 9}),
        ("skipgram", "model", "<i", 0, {"rule": "model must be one of", "got": 0}),
        ("skipgram", "bucket", "<i", 0, {"rule": "bucket must be at least", "expected": 1, "got": 0}),
        ("skipgram", "bucket", "<i", 2_000_000_000, {"rule": "the input matrix must be"}),
        ("skipgram", "minn", "<i", -1, {"rule": "minn must be", "expected": "0 to 100", "got": -1}),
        ("skipgram", "maxn", "<i", 1 << 30, {"rule": "maxn must be", "expected": "0 to 100", "got": 1 << 30}),
        ("skipgram", "t", "<d", float("nan"), {"rule": "t must be", "expected": "a finite number"}),
        ("skipgram", "entries", "<i", 1 << 30, {"rule": ENTRIES, "expected": 1 << 30}),
        ("skipgram", "words", "<i", -5, {"rule": ENTRIES}),
        ("labels", "labels", "<i", 2, {"rule": ENTRIES}),
        ("skipgram", "tokens", "<q", -1, {"rule": "the number of tokens must be at least", "expected": 0, "got": -1}),
        ("skipgram", "pruned", "<q", 1 << 60, {"part": f"a list of {1 << 60:,} n-grams", "length": 8 << 60}),
        ("skipgram", "pruned", "<q", 3, {}),
        ("codes_pruned", "pruned", "<q", -1, {}),
        ("codes_pruned", "bucket", "<i", 5, {"rule": "n-grams must be below bucket =", "expected": 5}),
    ],
)
def test_wrong_headers_are_refused(fasttext_files, tmp_path: Path, name, field, format, value, values):
    data = bytearray(fasttext_files[name].read_bytes())
    struct.pack_into(format, data, HEADER[field], value)
    path = tmp_path / "lies.bin"
    path.write_bytes(data)
    with refuses("damaged_file", path=path, **values):
        read_fasttext(path)


def test_no_memory_is_allocated_for_a_vocabulary_larger_than_the_file(fasttext_files, tmp_path: Path):
    data = bytearray(fasttext_files["skipgram"].read_bytes())
    struct.pack_into("<2i", data, HEADER["entries"], 1 << 30, 1 << 30)
    (tmp_path / "lies.bin").write_bytes(data)
    with refuses("damaged_file", part="a vocabulary of 1,073,741,824 entries", length=10 << 30):
        read_fasttext(tmp_path / "lies.bin")


@pytest.mark.parametrize(("index", "value"), [(0, 9), (1, 4), (2, 3), (3, 1)], ids=["dim", "parts", "width", "last"])
def test_quantizers_of_the_wrong_shape_are_refused(fasttext_files, tmp_path: Path, index: int, value: int):
    data = bytearray(fasttext_files["codes"].read_bytes())
    right = struct.pack("<4i", 10, 5, 2, 2)
    begin = data.find(right)
    assert begin > 0
    struct.pack_into("<i", data, begin + 4 * index, value)
    (tmp_path / "wrong.ftz").write_bytes(data)
    with refuses("damaged_file", rule="the quantizer must be for", expected="10 columns in 5 parts of one width"):
        read_fasttext(tmp_path / "wrong.ftz")


def test_other_files_are_refused(tmp_path: Path):
    path = tmp_path / "text.bin"
    path.write_bytes(b"")
    with refuses("damaged_file", path=path, part="magic and version", size=0):
        read_fasttext(path)
    path.write_bytes(b"2 3\nword 1 2 3\n")
    with refuses("damaged_file", path=path, rule="the magic number must be", expected=793712314):
        read_fasttext(path)
    with refuses("unreadable_file", path=tmp_path / "nowhere.bin"):
        read_fasttext(tmp_path / "nowhere.bin")


def read_or_refuse(path: Path) -> FastTextFile | None:
    """Read a file and use all of its parts; return None if it is refused."""
    try:
        file = read_fasttext(path)
    except firth.FirthError as error:
        assert error.code == "damaged_file" and error.values["path"] == path
        return None
    matrix = file.inputs.dense() if isinstance(file.inputs, ProductCodes) else np.array(file.inputs)
    assert matrix.shape == (len(file.words) + file.ngram_rows, file.args.dim)
    return file


FUZZED = ["softmax", "codes_few"]  # the smallest dense and quantized files
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", FUZZED)
@fuzz
@given(data=st.data())
def test_truncated_files_are_refused(fasttext_files, tmp_path: Path, name: str, data: st.DataObject):
    complete = fasttext_files[name].read_bytes()
    near_the_front = st.integers(0, 2000)
    (tmp_path / "cut").write_bytes(complete[: data.draw(near_the_front | st.integers(0, len(complete) - 1))])
    assert read_or_refuse(tmp_path / "cut") is None


@pytest.mark.parametrize("name", FUZZED)
@fuzz
@given(data=st.data())
def test_changed_bytes_never_cause_a_crash(fasttext_files, tmp_path: Path, name: str, data: st.DataObject):
    changed = bytearray(fasttext_files[name].read_bytes())
    offset = st.integers(0, 120) | st.integers(0, len(changed) - 1)
    for at, value in data.draw(st.lists(st.tuples(offset, st.integers(0, 255)), min_size=1, max_size=6)):
        changed[at] = value
    (tmp_path / "odd").write_bytes(changed)
    read_or_refuse(tmp_path / "odd")
