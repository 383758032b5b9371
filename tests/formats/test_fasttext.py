"""fastText's model files: the same bytes back, the same numbers, and nothing but a clear error from a damaged one."""

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

import firth
from firth.formats.fasttext import FastTextFile, SparseRows, read_fasttext, write_fasttext
from firth.kernels.product import ProductCodes, quantize

NAMES = [
    "skipgram", "cbow_tree", "softmax", "whole_words", "labels", "labels_tree", "labels_ova",
    "codes", "codes_norms", "codes_pruned", "codes_few",
]  # fmt: skip
every_file = pytest.mark.parametrize("name", NAMES)


@every_file
def test_read_and_written_it_has_the_same_bytes(fasttext_files, tmp_path: Path, name: str):
    write_fasttext(tmp_path / "again", read_fasttext(fasttext_files[name]))
    assert (tmp_path / "again").read_bytes() == fasttext_files[name].read_bytes()


@pytest.mark.skipif("FIRTH_LID176" not in os.environ, reason="FIRTH_LID176 names lid.176.ftz where there is one")
def test_the_released_language_model_has_the_same_bytes(tmp_path: Path):
    path = Path(os.environ["FIRTH_LID176"])
    write_fasttext(tmp_path / "again", read_fasttext(path))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@every_file
def test_content_is_what_fasttext_says(fasttext_files, name: str):
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
        assert np.array_equal(file.inputs, theirs.get_input_matrix())
        assert not file.inputs.flags.writeable and not file.inputs.flags.owndata  # mapped, not copied
        assert np.array_equal(file.outputs, theirs.get_output_matrix())


def opens_the_same(path: Path, file: FastTextFile) -> None:
    write_fasttext(path, file)
    again = read_fasttext(path)
    assert again.args == file.args and list(again.words) == list(file.words) and again.tokens == file.tokens


def test_matrices_with_few_rows_are_written_block_by_block(fasttext_files, tmp_path: Path):
    file = read_fasttext(fasttext_files["skipgram"])
    words, row_ids = len(file.words), np.array([0, 5, 2999], dtype=np.int32)
    rows = np.arange(30, dtype=np.float32).reshape(3, 10)
    spread = SparseRows(file.inputs[:words], rows, row_ids, 3000)
    expected = np.zeros((words + 3000, 10), dtype=np.float32)
    expected[:words], expected[words + row_ids] = file.inputs[:words], rows
    assert np.array_equal(spread[:], expected) and np.array_equal(
        spread[words - 1 : words + 6], expected[words - 1 : words + 6]
    )
    opens_the_same(tmp_path / "spread.bin", replace(file, inputs=spread))
    assert np.array_equal(read_fasttext(tmp_path / "spread.bin").inputs, expected)


def test_quantised_outputs_open_in_fasttext(fasttext_files, tmp_path: Path):
    file = read_fasttext(fasttext_files["labels"])
    coded = replace(file, inputs=quantize(np.array(file.inputs), norms=True), outputs=quantize(np.array(file.outputs)))
    opens_the_same(tmp_path / "both.ftz", coded)
    labels, probabilities = fasttext.load_model(str(tmp_path / "both.ftz")).predict("the king sleeps", k=3)
    ours = firth.load(tmp_path / "both.ftz").predict(["the king sleeps"], k=3)[0]
    assert [f"__label__{label}" for label, _ in ours] == list(labels)
    assert [probability for _, probability in ours] == pytest.approx(list(probabilities), abs=1e-5)


def test_version_11_has_no_ngrams_of_characters_in_classifiers(fasttext_files, tmp_path: Path):
    data = bytearray(fasttext_files["labels"].read_bytes())
    data[4:8] = struct.pack("<i", 11)
    (tmp_path / "old.bin").write_bytes(data)
    file = read_fasttext(tmp_path / "old.bin")
    assert file.version == 11 and file.args.maxn == 0


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"words": [b"with\0nul"]}, "without NUL"),
        ({"tokens": 5, "inputs": np.zeros((3, 10), np.float32)}, "input matrix must be"),
        ({"outputs": np.zeros((3, 10), np.float32)}, "output matrix must be"),
        ({"pruned": np.zeros((0, 2), np.int32)}, "input matrix must be"),
    ],
)
def test_what_fasttext_could_not_read_is_not_written(fasttext_files, tmp_path: Path, change, rule: str):
    file = read_fasttext(fasttext_files["skipgram"])
    if "words" in change:
        change = {"words": [*change["words"], *file.words[1:]]}
    with pytest.raises(firth.FirthError, match=rule):
        write_fasttext(tmp_path / "wrong.bin", replace(file, **change))
    assert not (tmp_path / "wrong.bin").exists()


HEADER = {
    "dim": 8, "ws": 12, "loss": 32, "model": 36, "bucket": 40, "minn": 44, "maxn": 48, "t": 56,
    "entries": 64, "words": 68, "labels": 72, "tokens": 76, "pruned": 84,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "field", "format", "value", "rule"),
    [
        ("skipgram", "dim", "<i", 0, "dim must be at least 1"),
        ("skipgram", "dim", "<i", 11, "must be .* × 11; found"),
        ("skipgram", "loss", "<i", 9, "loss must be one of"),
        ("skipgram", "model", "<i", 0, "model must be one of"),
        ("skipgram", "bucket", "<i", 0, "bucket must be at least 1"),
        ("skipgram", "bucket", "<i", 2_000_000_000, "must be 2,000,000,"),
        ("skipgram", "minn", "<i", -1, "minn must be 0 to"),
        ("skipgram", "maxn", "<i", 1 << 30, "maxn must be 0 to"),
        ("skipgram", "t", "<d", float("nan"), "t must be a finite number"),
        ("skipgram", "entries", "<i", 1 << 30, "entries must be words and labels together"),
        ("skipgram", "words", "<i", -5, "entries must be"),
        ("labels", "labels", "<i", 2, "entries must be"),
        ("skipgram", "tokens", "<q", -1, "tokens must be at least 0"),
        ("skipgram", "pruned", "<q", 1 << 60, "needs .* bytes"),
        ("skipgram", "pruned", "<q", 3, "must be below|kept must differ|input matrix must be|must be 0 or 1"),
        ("codes_pruned", "pruned", "<q", -1, "input matrix must be|is quantised must be"),
        ("codes_pruned", "bucket", "<i", 5, "below bucket = 5"),
    ],
)
def test_a_lying_header_is_told(fasttext_files, tmp_path: Path, name, field, format, value, rule):
    data = bytearray(fasttext_files[name].read_bytes())
    struct.pack_into(format, data, HEADER[field], value)
    path = tmp_path / "lies.bin"
    path.write_bytes(data)
    with pytest.raises(firth.FirthError, match=rule) as refused:
        read_fasttext(path)
    assert str(path) in str(refused.value)


def test_a_vocabulary_larger_than_the_file_is_not_made_room_for(fasttext_files, tmp_path: Path):
    data = bytearray(fasttext_files["skipgram"].read_bytes())
    struct.pack_into("<2i", data, HEADER["entries"], 1 << 30, 1 << 30)
    (tmp_path / "lies.bin").write_bytes(data)
    with pytest.raises(firth.FirthError, match="vocabulary of 1,073,741,824 entries needs"):
        read_fasttext(tmp_path / "lies.bin")


@pytest.mark.parametrize(("place", "value"), [(0, 9), (1, 4), (2, 3), (3, 1)], ids=["dim", "parts", "width", "last"])
def test_a_quantiser_of_the_wrong_shape_is_told(fasttext_files, tmp_path: Path, place: int, value: int):
    data = bytearray(fasttext_files["codes"].read_bytes())
    right = struct.pack("<4i", 10, 5, 2, 2)
    begin = data.find(right)
    assert begin > 0
    struct.pack_into("<i", data, begin + 4 * place, value)
    (tmp_path / "wrong.ftz").write_bytes(data)
    with pytest.raises(firth.FirthError, match="quantiser must be for 10 columns"):
        read_fasttext(tmp_path / "wrong.ftz")


def test_no_fasttext_model_is_told(tmp_path: Path):
    path = tmp_path / "text.bin"
    for content, rule in ((b"", "is cut or damaged"), (b"2 3\nword 1 2 3\n", "begins with 793712314")):
        path.write_bytes(content)
        with pytest.raises(firth.FirthError, match=rule):
            read_fasttext(path)
    with pytest.raises(firth.FirthError, match="Cannot read"):
        read_fasttext(tmp_path / "nowhere.bin")


def read_or_refuse(path: Path) -> FastTextFile | None:
    """A file, all of whose parts can be used, or None where it was refused by name."""
    try:
        file = read_fasttext(path)
    except firth.FirthError as error:
        assert str(path) in str(error)
        return None
    matrix = file.inputs.dense() if isinstance(file.inputs, ProductCodes) else np.array(file.inputs)
    assert matrix.shape == (len(file.words) + file.ngram_rows, file.args.dim)
    return file


FUZZED = ["softmax", "codes_few"]  # the smallest of each kind
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", FUZZED)
@fuzz
@given(data=st.data())
def test_a_file_cut_anywhere_is_refused(fasttext_files, tmp_path: Path, name: str, data: st.DataObject):
    whole = fasttext_files[name].read_bytes()
    near_the_front = st.integers(0, 2000)
    (tmp_path / "cut").write_bytes(whole[: data.draw(near_the_front | st.integers(0, len(whole) - 1))])
    assert read_or_refuse(tmp_path / "cut") is None


@pytest.mark.parametrize("name", FUZZED)
@fuzz
@given(data=st.data())
def test_flipped_bytes_never_crash(fasttext_files, tmp_path: Path, name: str, data: st.DataObject):
    changed = bytearray(fasttext_files[name].read_bytes())
    place = st.integers(0, 120) | st.integers(0, len(changed) - 1)
    for at, value in data.draw(st.lists(st.tuples(place, st.integers(0, 255)), min_size=1, max_size=6)):
        changed[at] = value
    (tmp_path / "odd").write_bytes(changed)
    read_or_refuse(tmp_path / "odd")
