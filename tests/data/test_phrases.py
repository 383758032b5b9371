"""Counting and joining of pairs compared with plain Python; scores compared with formulas; phrases in text."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses

from firth import Run, Tokens, Vocabulary
from firth.data.phrases import PhraseJoiner, find_phrases, phrase_scores
from firth.data.tokens import read_tokens
from firth.kernels.pairs import PairCounter, PairJoiner, count_pairs_twin, join_pairs_twin

streams = st.lists(st.integers(-1, 4), max_size=60)
SAME = np.arange(5, dtype=np.int32)


def chunks(stream: list[int], size: int) -> list[np.ndarray]:
    return [np.array(stream[at : at + size], dtype=np.int32) for at in range(0, len(stream), size)]


@given(streams, st.integers(1, 20), st.lists(st.booleans(), min_size=5, max_size=5))
def test_pair_counts_equal_those_of_the_python_twin(stream: list[int], size: int, keep: list[bool]) -> None:
    counter = PairCounter(0)
    for chunk in chunks(stream, size):
        counter.add(chunk, SAME, np.array(keep, dtype=np.uint8))
    first, second, counts = counter.pairs(1)
    pair_counts = dict(zip(zip(first.tolist(), second.tolist(), strict=True), counts.tolist(), strict=True))
    assert pair_counts == count_pairs_twin(stream, keep)
    assert list(pair_counts) == sorted(pair_counts)


@given(streams, st.integers(1, 20), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6))
def test_joined_pairs_equal_those_of_the_python_twin(stream: list[int], size: int, pairs: set[tuple[int, int]]) -> None:
    joined = {pair: 10 + number for number, pair in enumerate(sorted(pairs))}
    columns = np.array([[a, b, id] for (a, b), id in joined.items()], dtype=np.int32).reshape(-1, 3).T
    joiner = PairJoiner(*(np.ascontiguousarray(column) for column in columns))
    ids: list[int] = []
    for chunk in [*chunks(stream, size), np.zeros(0, dtype=np.int32)]:
        out = np.empty(len(chunk) + 1, dtype=np.int32)
        ids += out[: joiner.join(chunk, SAME, out)].tolist()
    assert ids == join_pairs_twin(stream, joined)


def test_pair_counter_stays_within_its_memory_limit() -> None:
    counter = PairCounter(1 << 17)
    keep, same = np.ones(2000, dtype=np.uint8), np.arange(2000, dtype=np.int32)
    random = np.random.default_rng(3)
    for _ in range(50):
        counter.add(np.tile(np.array([7, 8, -1], dtype=np.int32), 20), same, keep)
        counter.add(random.integers(0, 2000, 2000).astype(np.int32), same, keep)
    first, second, counts = counter.pairs(100)
    assert (first.tolist(), second.tolist()) == ([7], [8])
    assert 900 <= counts[0] <= 1001
    assert counter.dropped() > 0


def test_ids_outside_the_map_are_refused() -> None:
    with pytest.raises(ValueError, match="inside their map"):
        PairCounter(0).add(np.array([5], dtype=np.int32), SAME, np.ones(5, dtype=np.uint8))


def test_scores_equal_their_formulas() -> None:
    pairs, first, second, total = np.array([10]), np.array([20]), np.array([40]), 1000
    npmi = math.log((10 / 1000) / ((20 / 1000) * (40 / 1000))) / -math.log(10 / 1000)
    assert phrase_scores(pairs, first, second, total)[0] == pytest.approx(npmi)
    assert phrase_scores(pairs, first, second, total, "word2phrase", 5)[0] == pytest.approx((10 - 5) / (20 * 40) * 1000)
    assert phrase_scores(pairs, pairs, pairs, total)[0] == pytest.approx(1)  # never one without the other


def test_scores_equal_those_of_gensim() -> None:
    from gensim.models.phrases import npmi_scorer, original_scorer

    ours = {
        name: phrase_scores(np.array([30]), np.array([100]), np.array([50]), 10_000, name, 5)[0]
        for name in ("npmi", "word2phrase")
    }
    assert ours["npmi"] == pytest.approx(npmi_scorer(100, 50, 30, 999, 5, 10_000))
    # gensim scales by the vocabulary's size, word2phrase (and Firth) by the number of tokens.
    assert ours["word2phrase"] == pytest.approx(original_scorer(100, 50, 30, 10_000, 5, 10_000))


def sentences() -> list[list[str]]:
    """Return documents with "new york city" and "san francisco" among random words."""
    random = np.random.default_rng(11)
    cities = [["new", "york", "city"], ["san", "francisco"], ["new", "york"]]
    documents = []
    for _ in range(400):
        noise = [f"w{n}" for n in random.integers(0, 30, 6)]
        documents.append([*noise[:3], *cities[random.integers(0, 3)], *noise[3:]])
    return documents


def test_phrases_are_found_and_joined() -> None:
    documents = sentences()
    tokens = Tokens.from_lists(documents)
    for score in ("npmi", "word2phrase"):
        threshold = None if score == "npmi" else 5.0
        phrases = {(phrase.first, phrase.second) for phrase in find_phrases(tokens, score=score, threshold=threshold)}
        expected = {("new", "york"), ("san", "francisco")}
        assert expected <= phrases <= {*expected, ("york", "city")}
    lines = [" ".join(document) for document in documents]
    one, two = (read_tokens(lines, phrases=passes, run=Run(threads=2)) for passes in (1, 2))
    assert "new_york" in one.vocabulary and "new_york_city" not in one.vocabulary
    assert "new_york_city" in two.vocabulary and "san_francisco" in two.vocabulary
    assert two.raw_tokens == sum(map(len, documents))
    # The result equals joining the tokens of each document and counting them.
    for tokens in (one, two, read_tokens(Tokens.from_lists(documents), phrases=2)):
        joined = [PhraseJoiner(tokens.phrases)(document) for document in documents]
        counts = Counter(token for document in joined for token in document)
        order = sorted((t for t in counts if counts[t] >= 5), key=lambda t: (-counts[t], t))
        assert list(tokens.vocabulary.tokens) == order
        names = [[tokens.vocabulary.tokens[id] for id in tokens.ids[a:b]] for a, b in
                 zip(tokens.starts[:-1], tokens.starts[1:], strict=True)]  # fmt: skip
        assert names == [[token for token in document if counts[token] >= 5] for document in joined]


def test_phrases_are_cached_and_combined_with_a_start_vocabulary(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "a.txt"
    path.write_text("\n".join(" ".join(document) for document in sentences()))
    first, again = (read_tokens(path, phrases=1) for _ in range(2))
    assert again.phrases == first.phrases and again.fingerprint == first.fingerprint
    start = Vocabulary(["york", "new_york"], [1, 1])
    tokens = read_tokens(path, phrases=1, start_vocabulary=start)
    assert list(tokens.vocabulary.tokens[:2]) == ["york", "new_york"]
    assert tokens.vocabulary.counts[1] == first.vocabulary.counts[first.vocabulary.ids["new_york"]]


def test_phrases_do_not_cross_documents() -> None:
    tokens = Tokens.from_lists([["a"], ["b"]] * 50)
    assert find_phrases(tokens, threshold=-2) == []
    with refuses("invalid_value", option="score", choices="npmi, word2phrase", got="pmi"):
        find_phrases(tokens, score="pmi")


@given(st.lists(st.sampled_from("abcd"), max_size=20))
@settings(max_examples=50)
def test_joiner_is_greedy_from_the_left(tokens: list[str]) -> None:
    pairs = [("a", "b"), ("b", "c"), ("c", "c")]
    ids = {name: id for id, name in enumerate(["a", "b", "c", "d", "a_b", "b_c", "c_c"])}
    twin = join_pairs_twin([ids[t] for t in tokens], {(ids[a], ids[b]): ids[f"{a}_{b}"] for a, b in pairs})
    assert [ids[t] for t in PhraseJoiner([pairs])(tokens)] == twin
