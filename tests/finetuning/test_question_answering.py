"""Question answering: best spans, windows, unanswerable questions, logits of transformers, SQuAD's metrics."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from refusing import refuses, warns_code
from tiny import tiny_bert, tiny_gpt

import firth
from firth.core.scores import answer_f1, exact_match, plain_answer
from firth.data.questions import Question, answer_span, find_answer_spans
from firth.data.world import World
from firth.finetuning.question_answering import best_spans, padded_logits, token_span, windows
from firth.nets.attention import Packed

ONE = firth.Run(threads=1)
QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 8, "dropout": 0.0, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def base():
    return tiny_bert()


def questions_table(count: int = 40) -> dict[str, list[Any]]:
    rows = list(World(seed=21).questions(count))
    return {name: [getattr(row, name) for row in rows] for name in ("question", "passage", "answer", "start")}


# ---- SQuAD's metrics (evaluate-v1.1.py and evaluate-v2.0.py) ----


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The Eiffel Tower!", "eiffel tower"),
        ("an  apple\n a day", "apple day"),
        ("U.S.A.", "usa"),
        ("theatre", "theatre"),  # an article is a whole word
        ("a-an-the", "aanthe"),  # hyphens are removed before articles
        ("“quoted”", "“quoted”"),  # only ASCII punctuation is removed
        ("The", ""),
    ],
)
def test_answers_are_normalized(text, plain):
    assert plain_answer(text) == plain


@pytest.mark.parametrize(
    ("predicted", "expected", "exact", "f1"),
    [
        ("Denver Broncos", ["Denver Broncos", "The Denver Broncos"], 1, 1),
        ("the Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("gold gold", ["gold"], 0, 2 / 3),  # repeated words count each time
        ("Santa Clara, California", ["Levi's Stadium", "Santa Clara California"], 1, 1),
        ("1969", ["in the year 1970"], 0, 0),
        ("", [], 1, 1),
        ("something", [], 0, 0),
        ("", ["something"], 0, 0),
        ("the", ["something"], 0, 0),
    ],
)
def test_exact_match_and_f1_on_known_cases(predicted, expected, exact, f1):
    assert exact_match(predicted, expected) == exact and answer_f1(predicted, expected) == pytest.approx(f1)


def official_f1(prediction, ground_truth):
    """Return the F1 of the official script, from precision and recall."""
    from collections import Counter

    predicted, expected = plain_answer(prediction).split(), plain_answer(ground_truth).split()
    same = sum((Counter(predicted) & Counter(expected)).values())
    if same == 0:
        return 0
    precision, recall = same / len(predicted), same / len(expected)
    return 2 * precision * recall / (precision + recall)


def test_f1_equals_that_of_the_official_script():
    rng = np.random.default_rng(1)
    words = ["the", "king", "of", "rivers", "x"]
    for _ in range(200):
        predicted, expected = (" ".join(rng.choice(words, rng.integers(1, 6))) for _ in "ab")
        if plain_answer(predicted) and plain_answer(expected):
            assert answer_f1(predicted, [expected]) == pytest.approx(official_f1(predicted, expected))


# ---- the best span ----


@pytest.mark.parametrize("null", [False, True])
def test_the_best_span_equals_that_of_an_exhaustive_search(null):
    rng = np.random.default_rng(2)
    lengths, seconds = (9, 14, 6), (3, 5, 4)
    logits = torch.tensor(rng.normal(size=(sum(lengths), 2)), dtype=torch.float32)
    packed = Packed.of(lengths)
    table = padded_logits(logits, packed, torch.tensor(seconds), null)
    spans = best_spans(table, 3, null)
    for row, (begin, length, second) in enumerate(zip(packed.starts.tolist(), lengths, seconds, strict=False)):
        own = logits[begin : begin + length].numpy()
        pairs = [(i, j) for i in range(second, length - 1) for j in range(i, min(i + 3, length - 1))]
        best = max(pairs, key=lambda pair: own[pair[0], 0] + own[pair[1], 1])
        assert (spans.first[row], spans.last[row]) == best
        assert spans.score[row] == pytest.approx(own[best[0], 0] + own[best[1], 1], abs=1e-6)
        if null:
            assert spans.null[row] == pytest.approx(own[0].sum(), abs=1e-6)


def test_the_softmax_is_over_the_passage_only(base):
    model = firth.QuestionAnswerer(**QUICK).fit(questions_table(), ONE, base)
    read, _ = windows(
        model.tokenizer, [Question("", "who sleeps", "the king sleeps", (), ())], [(-1, -1)], model.method, 64
    )
    ids, kinds, starts = read.texts.tensors([0], True)
    packed = Packed(starts, 64)
    with torch.no_grad():
        table = padded_logits(model.net(ids, kinds, packed), packed, torch.from_numpy(read.texts.seconds), False)[
            0, :, 0
        ]
    begin, end = int(read.texts.seconds[0]), len(ids) - 1
    assert (
        torch.isfinite(table[begin:end]).all() and torch.isinf(table[:begin]).all() and torch.isinf(table[end:]).all()
    )


def test_windows_overlap_and_cover_the_passage(base):
    passage = " ".join(World(seed=21).sentences(60))
    rows = [Question("q", "where is the king", passage, ("the",), (None,))]
    method = firth.QuestionAnswerer(overlap=10)
    read, cut = windows(base.tokenizer, rows, find_answer_spans(rows).spans, method, 64)
    ids = base.tokenizer.encode(passage, special=False).ids
    covered = np.zeros(len(ids), int)
    for number in range(len(read.texts)):
        own = read.texts.ids[read.texts.starts[number] : read.texts.starts[number + 1]]
        inside = own[read.texts.seconds[number] : -1]
        first = read.firsts[number]
        assert len(own) <= 64 and inside.tolist() == ids[first : first + len(inside)]
        covered[first : first + len(inside)] += 1
    assert cut == 0 and covered.min() == 1 and (covered == 2).sum() >= 10 * (len(read.texts) - 1) - 10
    assert read.spans[0, 0] == read.texts.seconds[0] and (read.spans[2:] == -1).all()  # "the" is the first word


def test_offsets_of_answers_in_long_passages(base):
    """Offsets refer to the full passage, also beyond the positions of the base."""
    model = firth.QuestionAnswerer(**QUICK).fit(questions_table(), ONE, base)
    row = next(iter(World(seed=21).questions(1)))
    filler = " ".join(World(seed=5).sentences(80)) + " . "
    spans = model.answer([row.question, row.question], [filler + row.passage, row.passage])
    for span, passage in zip(spans, (filler + row.passage, row.passage), strict=True):
        assert passage[span.start : span.end] == span.text and span.text
    assert model.answer([row.question], [""]) == [("", 0, 0, 0.0)]
    assert model.answer([], []) == []


def test_the_tokens_of_an_answer_are_those_that_overlap_it():
    offsets = [(0, 3), (4, 8), (8, 10), (11, 15)]
    assert token_span(offsets, (4, 10)) == (1, 2) and token_span(offsets, (5, 9)) == (1, 2)
    assert token_span(offsets, (0, 3)) == (0, 0) and token_span(offsets, (-1, -1)) == (-1, -1)


# ---- transformers ----


def test_transformers_computes_the_same_logits(base, tmp_path):
    from transformers import AutoTokenizer, BertForQuestionAnswering

    model = firth.QuestionAnswerer(**QUICK).fit(questions_table(), ONE, base)
    model.save(tmp_path / "ours")
    net = BertForQuestionAnswering.from_pretrained(tmp_path / "ours").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "ours")
    data = questions_table(5)
    with torch.no_grad():
        for question, passage in zip(data["question"], data["passage"], strict=True):
            row = [Question("", question, passage, (), ())]
            read, _ = windows(model.tokenizer, row, [(-1, -1)], model.method, 128)
            ids, kinds, starts = read.texts.tensors([0], True)
            ours = model.net(ids, kinds, Packed(starts, len(ids)))
            theirs = net(**tokenizer(question, passage, return_tensors="pt"))
            np.testing.assert_allclose(ours[:, 0], theirs.start_logits[0], atol=1e-5)
            np.testing.assert_allclose(ours[:, 1], theirs.end_logits[0], atol=1e-5)
    net.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    loaded = firth.load(tmp_path / "theirs", firth.QuestionAnswerer)
    assert (
        loaded.answer(data["question"], data["passage"])[0].text
        == model.answer(data["question"], data["passage"])[0].text
    )


# ---- unanswerable questions ----


def test_unanswerable_questions_are_learned(base):
    """Half of the passages do not hold the answer."""
    data = questions_table(120)
    passages = [passage if row % 2 else "the forest" for row, passage in enumerate(data["passage"])]
    answers = [answer if row % 2 else None for row, answer in enumerate(data["answer"])]
    table = {"question": data["question"], "passage": passages, "answer": answers}
    with refuses("malformed_data", n_without=60, n_rows=120):
        firth.QuestionAnswerer(held_out=0.0).fit(table, ONE, base)
    settings = {**QUICK, "epochs": 15, "learning_rate": 3e-3, "held_out": 0.0}
    model = firth.QuestionAnswerer(**settings, unanswerable=True).fit(table, ONE, base)
    spans = model.answer(data["question"], passages)
    answered = [bool(span.text) for span in spans]
    assert np.mean([answered[row] == bool(row % 2) for row in range(120)]) > 0.9
    assert all((span.score >= 0) == bool(span.text) for span in spans)
    cautious = firth.QuestionAnswerer(**settings, unanswerable=True, margin=1e6).fit(table, ONE, base)
    assert not any(span.text for span in cautious.answer(data["question"], passages))


# ---- input formats and invalid input ----


def squad(answers):
    qas = [{"id": f"q{n}", "question": "who ?", "answers": each} for n, each in enumerate(answers)]
    return {"data": [{"title": "t", "paragraphs": [{"context": "the old king and the king", "qas": qas}]}]}


def test_squad_files_are_read(tmp_path):
    document = squad([[{"text": "king", "answer_start": 8}, {"text": "old king", "answer_start": 4}], []])
    document["data"][0]["paragraphs"][0]["qas"][1]["is_impossible"] = True
    (tmp_path / "s.json").write_text(json.dumps(document))
    first, second = firth.Questions(tmp_path / "s.json")
    assert first == Question("q0", "who ?", "the old king and the king", ("king", "old king"), (8, 4))
    assert second.answers == ()
    (tmp_path / "bad.json").write_text('{"data": [{"paragraphs": [{}]}]}')
    with refuses("malformed_data", path=tmp_path / "bad.json", reason="missing key 'qas'"):
        firth.Questions(tmp_path / "bad.json")
    for start in ("8", 8.5, [8]):
        (tmp_path / "bad.json").write_text(json.dumps(squad([[{"text": "king", "answer_start": start}]])))
        with refuses("malformed_data", path=tmp_path / "bad.json", reason="answer_start must be a whole number"):
            firth.Questions(tmp_path / "bad.json")
    with refuses("unknown_column", name="passage", available="question, context") as caught:
        firth.Questions({"question": ["a"], "context": ["b"]})
    assert "--passage-column" in caught.value.values["hint"]


def test_an_answer_is_found_at_the_nearest_occurrence():
    assert answer_span("the king and the king", "king", 17) == (17, 21)
    assert answer_span("the king and the king", "king", 15) == (17, 21)
    assert answer_span("the king and the king", "king", None) == (4, 8)
    assert answer_span("the king", "queen", 4) == (-1, -1)


def test_answers_that_do_not_occur_in_their_passage_are_listed(base, tmp_path):
    text = [
        [{"text": "king", "answer_start": 8}],
        [{"text": "queen", "answer_start": 8}],
        [{"text": "king", "answer_start": 9}],
    ]
    (tmp_path / "s.json").write_text(json.dumps(squad(text)))
    with warns_code() as issued:
        model = firth.QuestionAnswerer(**QUICK, held_out=0.0).fit(firth.Questions(tmp_path / "s.json"), ONE, base)
    notes = [str(warning) for warning in issued]
    assert any(note.startswith("1 of 3 questions") and "q1" in note for note in notes)
    assert any(note.startswith("1 of 3 questions") and "q2" in note for note in notes)
    assert model.training["answers_not_found"] == ["q1"] and model.training["answers_moved"] == ["q2"]
    assert model.training["questions"] == 3 and model.training["windows"] == 2


def test_invalid_training_data_and_questions_are_refused(base):
    with refuses("incompatible_start", method="QuestionAnswerer"):
        firth.QuestionAnswerer().fit(questions_table(), ONE, tiny_gpt())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with refuses("empty_data", n_train=1):
            firth.QuestionAnswerer(held_out=0.0).fit({"question": ["a"], "passage": ["b"], "answer": ["c"]}, ONE, base)
    model = firth.QuestionAnswerer(**QUICK).fit(questions_table(), ONE, base)
    with refuses("shape_mismatch", n_questions=2, n_passages=1):
        model.answer(["a", "b"], ["c"])
    with refuses("invalid_type"):
        model.answer("a", "b")
    with warns_code("texts_truncated") as issued:
        model.answer(["king " * 100], ["the king"])
    assert str(issued[0]).startswith("1 of 1 texts were truncated to 64 tokens")


def test_held_out_questions_have_other_passages(base):
    from firth.finetuning.question_answering import split_by_passage

    rows = [Question(str(n), "q", f"passage {n // 5}", (), ()) for n in range(50)]
    train, dev = split_by_passage(rows, 0.3, 1)
    assert len(dev) == 15 and not {row.passage for row in train} & {row.passage for row in dev}


def test_an_unused_pooler_of_an_older_folder_is_ignored(base, tmp_path):
    from safetensors.numpy import load_file, save_file
    from transformers import BertForQuestionAnswering

    model = firth.QuestionAnswerer(**QUICK).fit(questions_table(), ONE, base)
    model.save(tmp_path / "ours")
    BertForQuestionAnswering.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    model.tokenizer.save(tmp_path / "theirs" / "tokenizer.json")
    weights = load_file(tmp_path / "theirs" / "model.safetensors")
    dim = base.size.dim
    weights |= {
        "bert.pooler.dense.weight": np.eye(dim, dtype=np.float32),
        "bert.pooler.dense.bias": np.ones(dim, np.float32),
    }
    save_file(weights, tmp_path / "theirs" / "model.safetensors", {"format": "pt"})
    data = questions_table(3)
    spans = firth.load(tmp_path / "theirs", firth.QuestionAnswerer).answer(data["question"], data["passage"])
    assert [span.text for span in spans] == [span.text for span in model.answer(data["question"], data["passage"])]
