"""Analogies, compared with gensim's scorer on the same vectors and with Vectors.analogy one question at a time."""

import json
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from refusing import refuses

from firth import Vectors
from firth.evaluate import Section, analogies, analogy, common_questions, read_questions

CASES = (str, str.upper, str.title)


def planted(seed: int, pairs: int = 20, noise: float = 0.25) -> tuple[Vectors, list[Section]]:
    """Return words in which second − first is nearly constant per section; some in several cases, some missing."""
    rng = np.random.default_rng(seed)
    keys: list[str] = []
    rows: list[np.ndarray] = []
    sections = []
    for name in ("capitals", "gram1-plural"):
        offset = rng.normal(size=12)
        word_pairs = [(f"{name[:2]}a{i}", f"{name[:2]}b{i}") for i in range(pairs)]
        for a, b in word_pairs:
            base = rng.normal(size=12)
            for word, vector in ((a, base), (b, base + offset)):
                if rng.random() < 0.9:
                    for spelled in rng.permutation([case(word) for case in CASES])[: rng.integers(1, 4)]:
                        keys.append(str(spelled))
                        rows.append(vector + noise * rng.normal(size=12))
        questions = [(a, b, c, d) for a, b in word_pairs for c, d in word_pairs if a != c]
        sections.append(Section(name, tuple(questions)))
    order = rng.permutation(len(keys))
    return Vectors([keys[i] for i in order], np.array(rows)[order]), sections


def write(sections: list[Section], path: Path) -> Path:
    blocks = (f": {s.name}\n" + "".join(" ".join(q) + "\n" for q in s.questions) for s in sections)
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def gensim_of(vectors: Vectors) -> KeyedVectors:
    theirs = KeyedVectors(vectors.dim)
    theirs.add_vectors(list(vectors.keys), vectors.matrix)
    return theirs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("restrict", "fold_case"), [(30000, True), (70, True), (70, False)])
def test_equals_gensim(seed, restrict, fold_case, tmp_path):
    vectors, sections = planted(seed)
    path = write(sections, tmp_path / "questions.txt")
    theirs = gensim_of(vectors).evaluate_word_analogies(path, restrict_vocab=restrict, case_insensitive=fold_case)[1]
    ours = analogies(vectors, path, restrict=restrict, fold_case=fold_case)
    expected = [(len(s["correct"]), len(s["correct"]) + len(s["incorrect"])) for s in theirs]
    assert [(s.correct, s.answered) for s in (*ours.sections, ours.total)] == expected
    assert 0 < ours.total.correct < ours.total.answered < ours.total.questions  # the case is not trivial


@pytest.mark.parametrize("method", ["add", "mul"])
def test_equals_one_question_at_a_time(method, monkeypatch):
    vectors, sections = planted(5)
    monkeypatch.setattr(analogy, "BATCH_BYTES", 7 * 4 * len(vectors))  # batches of 7: their seams are crossed
    ours = analogies(vectors, sections, method=method, fold_case=False)
    for section, score in zip(sections, ours.sections, strict=True):
        answerable = [q for q in section.questions if all(word in vectors for word in q)]
        correct = [q for q in answerable if vectors.analogy(*q[:3], method=method)[0].key == q[3]]
        assert (score.answered, score.correct) == (len(answerable), len(correct))
    assert 0 < ours.total.correct < ours.total.answered


def test_the_more_frequent_spelling_represents_a_word():
    east, north = [1.0, 0.0], [0.0, 1.0]
    rows = [east, north, east, [1.1, 0.1], [0.05, 1.0], [-1.0, -1.0]]
    vectors = Vectors(["man", "Woman", "WOMAN", "king", "QUEEN", "queen"], rows)
    question = [Section("family", (("Man", "woman", "King", "queen"),))]
    assert analogies(vectors, question).total.correct == 1  # woman is north, QUEEN counts as queen
    assert analogies(vectors, question, fold_case=False).total.answered == 0


def test_totals_and_reasons_of_skipped_questions():
    vectors = Vectors(list("abcdef"), np.eye(6))
    sections = [
        Section("capitals", (("a", "b", "c", "d"), ("a", "b", "x", "y"), ("a", "b", "x", "f"))),
        Section("gram1", (("a", "b", "c", "x"),)),
        Section("empty", ()),
    ]
    result = analogies(vectors, sections, restrict=5)
    assert [
        (s.name, s.questions, s.answered, s.skipped) for s in (result.semantic, result.syntactic, result.total)
    ] == [
        ("semantic", 3, 1, 2),
        ("syntactic", 1, 0, 1),
        ("total", 4, 1, 3),
    ]
    assert result.missing == {"x": 3, "y": 1}
    assert result.beyond == {"f": 1}
    assert np.isnan(result.syntactic.accuracy)
    assert result.to_json()["syntactic"]["accuracy"] is None
    assert "not among the first 5: f (1)" in str(result)
    assert "no vector: x (3), y (1)" in result._repr_html_()
    json.dumps(result.to_json(), allow_nan=False)


def test_question_words_are_never_answers():
    vectors = Vectors(["a", "b", "c"], np.eye(3))
    assert analogies(vectors, [Section("s", (("a", "b", "c", "a"),))]).total.correct == 0


def test_common_questions_are_those_that_all_models_can_answer():
    one, other = Vectors(list("abcdx"), np.eye(5)), Vectors(list("ABCDy"), np.eye(5))
    sections = [Section("s", (("a", "b", "c", "d"), ("a", "b", "c", "x"), ("a", "b", "c", "y")))]
    shared = common_questions(sections, one, other)
    assert shared == [Section("s", (("a", "b", "c", "d"),))]
    assert common_questions(sections, one, other, restrict=3)[0].questions == ()
    assert common_questions(sections, one, other, fold_case=False)[0].questions == ()
    assert analogies(one, shared).total.skipped == analogies(other, shared).total.skipped == 0


def test_reads_sections_and_blank_lines(tmp_path):
    path = tmp_path / "q.txt"
    path.write_bytes(": one\r\na b c d\r\n\r\n:two\nÄ\tö  ü ß\n".encode())
    assert read_questions(path) == [Section("one", (("a", "b", "c", "d"),)), Section("two", (("Ä", "ö", "ü", "ß"),))]


@pytest.mark.parametrize(
    ("content", "code", "values"),
    [
        (b": s\na b c d\na b c\n", "malformed_data", {"number": 3, "got": 3, "line": "a b c"}),
        (b"a b c d\n", "malformed_data", {"number": 1}),
        (b": s\n", "empty_data", {}),
        (b"", "empty_data", {}),
        (b": s\na b c \xff\n", "invalid_encoding", {"start": 10}),
    ],
)
def test_malformed_files_are_refused(content, code, values, tmp_path):
    path = tmp_path / "q.txt"
    path.write_bytes(content)
    with refuses(code, path=path, **values):
        read_questions(path)


def test_invalid_arguments_are_refused(tmp_path):
    vectors = Vectors(["a", "b"], [[1.0, 0.0], [np.nan, 1.0]])
    question = [Section("s", (("a", "b", "a", "b"),))]
    with refuses("non_finite", key="b", row=1):
        analogies(vectors, question)
    with refuses("invalid_value", option="method", got="sum"):
        analogies(vectors, question, method="sum")
    with refuses("invalid_value", option="restrict", got=0):
        analogies(vectors, question, restrict=0)
    with refuses("unreadable_file", path=tmp_path / "none.txt", reason="No such file or directory"):
        analogies(vectors, tmp_path / "none.txt")
    with refuses("too_few"):
        common_questions(question)
