"""gensim reads Firth's files, Firth reads gensim's files, and both find the same neighbors."""

from pathlib import Path

import gensim
import numpy as np
import pytest
from gensim.models import Doc2Vec, FastText, KeyedVectors, Word2Vec
from gensim.models.doc2vec import TaggedDocument
from refusing import refuses

import firth
from firth.formats.detect import detect

WORDS = ["the", "of", "river", "naïve", "川", "a\u00a0b", "</s>", "x" * 120, *(f"w{row}" for row in range(92))]


def source() -> firth.Vectors:
    return firth.Vectors(WORDS, np.random.default_rng(3).normal(size=(100, 20)).astype(np.float32))


def peer_of(vectors: firth.Vectors) -> KeyedVectors:
    peer = KeyedVectors(vectors.dim)
    peer.add_vectors(list(vectors.keys), np.array(vectors.matrix))
    return peer


def assert_same(firths: firth.Vectors, gensims: KeyedVectors) -> None:
    assert list(firths.keys) == gensims.index_to_key
    assert np.array_equal(firths.matrix, gensims.vectors)
    for word in WORDS[:8]:
        hits, theirs = firths.neighbors(word, k=10), gensims.most_similar(word, topn=10)
        assert [hit.key for hit in hits] == [key for key, _ in theirs]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in theirs], abs=1e-6)
    several = firths.neighbors(["the", "of"], negative="river", k=5)
    assert [hit.key for hit in several] == [key for key, _ in gensims.most_similar(["the", "of"], ["river"], topn=5)]
    restricted = firths.neighbors("the", k=5, restrict=20)
    assert [hit.key for hit in restricted] == [key for key, _ in gensims.most_similar("the", topn=5, restrict_vocab=20)]
    product = firths.analogy("the", "of", "river", k=5, method="mul")
    theirs = gensims.most_similar_cosmul(["of", "river"], ["the"])
    assert [hit.key for hit in product] == [key for key, _ in theirs[:5]]
    assert firths.similarity("the", "of") == pytest.approx(float(gensims.similarity("the", "of")), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "binary", "no_header"),
    [("v.txt", False, False), ("v.vec", False, False), ("v.glove", False, True), ("v.bin", True, False)],
)
def test_gensim_reads_files_of_firth(tmp_path: Path, name: str, binary: bool, no_header: bool) -> None:
    firth.write_vectors(source(), tmp_path / name)
    loaded = KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary, no_header=no_header)
    assert_same(source(), loaded)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("write_header", [True, False])
def test_firth_reads_files_of_gensim(tmp_path: Path, binary: bool, suffix: str, write_header: bool) -> None:
    if binary and not write_header:
        return  # a binary file always has its header
    path = tmp_path / f"theirs{suffix}"
    peer_of(source()).save_word2vec_format(str(path), binary=binary, write_header=write_header)
    assert_same(firth.read_vectors(path), peer_of(source()))


SENTENCES = [["a", "b", "c"], ["b", "c", "d"]] * 10
TRAINED = {
    "Word2Vec": lambda: Word2Vec(SENTENCES, vector_size=4, min_count=1),
    "FastText": lambda: FastText(SENTENCES, vector_size=4, min_count=1, bucket=10),
    "Doc2Vec": lambda: Doc2Vec([TaggedDocument(words, [str(n)]) for n, words in enumerate(SENTENCES)], vector_size=4),
    "KeyedVectors": lambda: peer_of(source()),
}


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_gensim_pickles_are_refused_with_an_export_command(tmp_path: Path, name: str, protocol: int) -> None:
    path = tmp_path / "saved.model"
    TRAINED[name]().save(str(path), pickle_protocol=protocol)
    assert path.read_bytes()[0] == 0x80
    save = 'save_word2vec_format("vectors.bin", binary=True)'
    load = f"gensim.models.{name}.load({str(path)!r})"
    export = f"{load}.{save}" if name == "KeyedVectors" else f"model = {load}; model.wv.{save}"
    for read in (firth.load, firth.read_vectors, detect, lambda path: firth.read_vectors(path, "word2vec")):
        with refuses("unsafe_pickle", path=path, found=name, export=export):
            read(path)


def test_pickled_fasttext_vectors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "saved.kv"
    TRAINED["FastText"]().wv.save(str(path))
    load = f"gensim.models.fasttext.FastTextKeyedVectors.load({str(path)!r})"
    export = f'{load}.save_word2vec_format("vectors.bin", binary=True)'
    with refuses("unsafe_pickle", found="FastTextKeyedVectors", export=export):
        firth.read_vectors(path)


def test_gensim_pickles_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "saved.model"
    Word2Vec(SENTENCES, vector_size=4, min_count=1).save(str(path))
    for function in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(f"pickle.{function}", None)
    with refuses("unsafe_pickle", found="Word2Vec"):
        firth.read_vectors(path)


def test_export_command_gives_a_readable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Word2Vec(SENTENCES, vector_size=4, min_count=1)
    model.save(str(tmp_path / "saved.model"))
    with refuses("unsafe_pickle") as error:
        firth.load(tmp_path / "saved.model")
    monkeypatch.chdir(tmp_path)
    exec(error.value.values["export"], {"gensim": gensim})
    vectors = firth.read_vectors("vectors.bin")
    assert list(vectors.keys) == model.wv.index_to_key and np.array_equal(vectors.matrix, model.wv.vectors)


def test_text_that_mentions_gensim_is_read(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("gensim.models.word2vec 1 2\nb 3 4\n")
    assert firth.read_vectors(tmp_path / "v.txt").keys == ["gensim.models.word2vec", "b"]
