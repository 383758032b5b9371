"""Vectors of unknown words from their contexts: a regression with a known answer, and words held out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusing import refuses
from scipy.sparse import csr_matrix

import firth
from firth.data.world import World
from firth.words.context_transform import learned_transform, window_rows


def test_a_linear_map_is_recovered():
    """If every vector is a known map of the mean of its contexts, that map is found."""
    random = np.random.default_rng(1)
    counts = csr_matrix(random.integers(0, 9, (60, 60)).astype(float))
    contexts = random.normal(size=(60, 4)).astype(np.float32)
    means = (counts @ contexts) / np.asarray(counts.sum(axis=1))
    expected = random.normal(size=(4, 4))
    found = learned_transform(counts, contexts, (means @ expected.T).astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with refuses("too_few", dim=4, got=3):
        learned_transform(10 * counts[:3, :3], contexts[:3], contexts[:3])


def test_windows_skip_unknown_words_and_the_word_itself():
    rows = {"a": 0, "b": 1, "c": 2, "w": 3}
    assert window_rows([["a", "??", "b", "w", "c"], ["w", "w", "a"]], "w", rows, 1) == ([1, 2, 0], 3)
    assert window_rows([["a", "b", "new", "c"]], "new", rows, 2) == ([0, 1, 2], 1)
    assert window_rows([["a", "b"]], "new", rows, 2) == ([], 0)


@pytest.fixture(scope="module")
def world() -> tuple[list[str], dict[str, list[str]]]:
    """Sentences without three words, and the sentences that use these words."""
    texts = list(World(seed=4).sentences(5000))
    uses = {word: [text for text in texts if word in text.split()] for word in ("queen", "uncle", "violin")}
    kept = [text for text in texts if not uses.keys() & set(text.split())]
    return kept, uses


def test_held_out_words_are_near_those_they_could_replace(world, tmp_path):
    kept, uses = world
    model = firth.SkipGram(dim=20, epochs=8).fit(kept, firth.Run(deterministic=True))
    assert not any(word in model.vectors for word in uses)
    full = firth.SkipGram(dim=20, epochs=8).fit(
        [*kept, *(text for texts in uses.values() for text in texts)], firth.Run(deterministic=True)
    )
    with refuses("unsupported_model"):
        model.vector_from_contexts("queen", uses["queen"])
    learned = model.with_context_transform(kept)
    assert model.context_transform is None
    shared = {}
    for name, vectors in {
        "contexts": {word: learned.vector_from_contexts(word, texts) for word, texts in uses.items()},
        "a frequent word": dict.fromkeys(uses, learned.vectors["the"]),
    }.items():
        shared[name] = sum(
            len(
                {hit.key for hit in learned.vectors.neighbors(vector, k=10)}
                & {hit.key for hit in full.vectors.neighbors(word, k=10)}
            )
            for word, vector in vectors.items()
        )
    assert shared["contexts"] > 2 * shared["a frequent word"] + 3, shared
    learned.save(tmp_path / "model")
    again = firth.load(tmp_path / "model", firth.SkipGram)
    vector = again.vector_from_contexts("Queen", uses["queen"])
    np.testing.assert_array_equal(vector, learned.vector_from_contexts("queen", uses["queen"]))
    with refuses("empty_data", occurrences=0, word="queen"):
        again.vector_from_contexts("queen", uses["violin"][:1])
    with refuses("invalid_value", option="word", words=["two", "words"]):
        again.vector_from_contexts("two words", uses["violin"])


@pytest.mark.parametrize(
    "method",
    [
        firth.CBOW(dim=4, epochs=1),
        firth.GloVe(dim=4, epochs=1),
        firth.PMI(dim=4),
        firth.FastText(dim=4, epochs=1, buckets=50),
    ],
    ids=lambda method: type(method).__name__,
)
def test_every_model_of_words_learns_a_transform(method, world, tmp_path):
    kept, uses = world
    model = method.fit(kept[:400]).with_context_transform(kept[:400])
    vector = model.vector_from_contexts("queen", uses["queen"])
    assert vector.shape == (4,) and vector.any()
    model.save(tmp_path / "model")
    again = firth.load(tmp_path / "model", type(method))
    np.testing.assert_array_equal(again.vector_from_contexts("queen", uses["queen"]), vector)


def test_a_damaged_transform_is_refused(world, tmp_path):
    kept, uses = world
    firth.CBOW(dim=4, epochs=1).fit(kept[:300]).with_context_transform(kept[:300]).save(tmp_path / "model")
    path = tmp_path / "model" / "vocabulary.json"
    stored = json.loads(path.read_text())
    for wrong in ([[1.0, 2.0]], [["a"]], [], [[float("nan")]], 3, [[1.0]]):
        path.write_text(json.dumps(stored | {"context_transform": wrong}))
        with refuses("damaged_model"):
            firth.load(tmp_path / "model", firth.CBOW).vector_from_contexts("queen", uses["queen"])


def test_the_command_line(world, tmp_path):
    from click.testing import CliRunner

    from firth.cli.main import cli

    kept, uses = world
    (tmp_path / "text.txt").write_text("\n".join(kept))
    (tmp_path / "uses.txt").write_text("\n".join(uses["queen"]))
    firth.SkipGram(dim=8, epochs=2).fit(kept).save(tmp_path / "words")

    def call(*arguments: object) -> str:
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    call("pooling", tmp_path / "words", "-o", tmp_path / "better", "--contexts", tmp_path / "text.txt")
    found = json.loads(
        call("query", "neighbors", tmp_path / "better", "queen", "--uses", tmp_path / "uses.txt", "-k", 3, "--json")
    )
    model = firth.load(tmp_path / "better", firth.SkipGram)
    expected = model.vectors.neighbors(model.vector_from_contexts("queen", uses["queen"]), k=3)
    assert [hit["key"] for hit in found["queen"]] == [hit.key for hit in expected]
