"""gensim reads Firth's files, Firth reads gensim's files, and both find the same neighbors."""

from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

import firth

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
