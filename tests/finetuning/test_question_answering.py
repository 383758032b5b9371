"""Answers as stretches of passages: the best pair, windows, no answer, transformers' logits, the official figures."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from tiny import tiny_bert, tiny_gpt

import firth
from firth.core.scores import answer_f1, exact_match, plain_answer
from firth.data.questions import Question, answer_span, find_answer_spans
from firth.data.world import World
from firth.finetuning.question_answering import best_spans, laid_out, token_span, windows
from firth.nets.attention import Packed

ONE = firth.Run(threads=1)
QUICK = {"epochs": 1, "batch_size": 8, "dropout": 0.0, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def base():
    return tiny_bert()


def asked(count: int = 40) -> dict[str, list]:
    rows = list(World(seed=21).questions(count))
    return {name: [getattr(row, name) for row in rows] for name in ("question", "passage", "answer", "start")}


# ---- the official figures (evaluate-v1.1.py and evaluate-v2.0.py) ----


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The Eiffel Tower!", "eiffel tower"),
        ("an  apple\n a day", "apple day"),
        ("U.S.A.", "usa"),
        ("theatre", "theatre"),  # an article is a whole word
        ("a-an-the", "aanthe"),  # hyphens go before articles do
        ("“quoted”", "“quoted”"),  # ASCII punctuation alone
        ("The", ""),
    ],
)
def test_answers_are_compared_in_plain_form(text, plain):
    assert plain_answer(text) == plain


@pytest.mark.parametrize(
    ("found", "right", "exact", "f1"),
    [
        ("Denver Broncos", ["Denver Broncos", "The Denver Broncos"], 1, 1),
        ("the Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("gold gold", ["gold"], 0, 2 / 3),  # words count as often as they stand
        ("Santa Clara, California", ["Levi's Stadium", "Santa Clara California"], 1, 1),
        ("1969", ["in the year 1970"], 0, 0),
        ("", [], 1, 1),
        ("something", [], 0, 0),
        ("", ["something"], 0, 0),
        ("the", ["something"], 0, 0),
    ],
)
def test_the_official_figures_on_known_cases(found, right, exact, f1):
    assert exact_match(found, right) == exact and answer_f1(found, right) == pytest.approx(f1)


def official_f1(prediction, ground_truth):
    """As the script has it, by precision and recall."""
    from collections import Counter

    found, right = plain_answer(prediction).split(), plain_answer(ground_truth).split()
    same = sum((Counter(found) & Counter(right)).values())
    if same == 0:
        return 0
    precision, recall = same / len(found), same / len(right)
    return 2 * precision * recall / (precision + recall)


def test_f1_is_that_of_precision_and_recall():
    rng = np.random.default_rng(1)
    for _ in range(200):
        found, right = (" ".join(rng.choice(["the", "king", "of", "rivers", "x"], rng.integers(1, 6))) for _ in "ab")
        if plain_answer(found) and plain_answer(right):
            assert answer_f1(found, [right]) == pytest.approx(official_f1(found, right))


# ---- the best stretch ----


@pytest.mark.parametrize("null", [False, True])
def test_the_best_stretch_against_trying_all(null):
    rng = np.random.default_rng(2)
    lengths, seconds = (9, 14, 6), (3, 5, 4)
    logits = torch.tensor(rng.normal(size=(sum(lengths), 2)), dtype=torch.float32)
    packed = Packed.of(lengths)
    table = laid_out(logits, packed, torch.tensor(seconds), null)
    found = best_spans(table, 3, null)
    for row, (begin, length, second) in enumerate(zip(packed.starts.tolist(), lengths, seconds, strict=False)):
        own = logits[begin : begin + length].numpy()
        pairs = [(i, j) for i in range(second, length - 1) for j in range(i, min(i + 3, length - 1))]
        best = max(pairs, key=lambda pair: own[pair[0], 0] + own[pair[1], 1])
        assert (found.first[row], found.last[row]) == best
        assert found.score[row] == pytest.approx(own[best[0], 0] + own[best[1], 1], abs=1e-6)
        if null:
            assert found.null[row] == pytest.approx(own[0].sum(), abs=1e-6)


def test_the_softmax_is_over_the_passage_alone(base):
    model = firth.QuestionAnswerer(**QUICK).fit(asked(), ONE, base)
    read, _ = windows(
        model.tokenizer, [Question("", "who sleeps", "the king sleeps", (), ())], [(-1, -1)], model.method, 64
    )
    ids, kinds, starts = read.texts.tensors([0], True)
    packed = Packed(starts, 64)
    with torch.no_grad():
        table = laid_out(model.net(ids, kinds, packed), packed, torch.from_numpy(read.texts.seconds), False)[0, :, 0]
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


def test_a_long_passage_is_answered_where_the_answer_stands(base):
    """The same words far behind, beyond the base's places: the offsets are of the whole passage."""
    model = firth.QuestionAnswerer(**QUICK).fit(asked(), ONE, base)
    row = next(iter(World(seed=21).questions(1)))
    filler = " ".join(World(seed=5).sentences(80)) + " . "
    found = model.answer([row.question, row.question], [filler + row.passage, row.passage])
    for span, passage in zip(found, (filler + row.passage, row.passage), strict=True):
        assert passage[span.start : span.end] == span.text and span.text
    assert model.answer([row.question], [""]) == [("", 0, 0, 0.0)]
    assert model.answer([], []) == []


def test_tokens_that_touch_an_answer_are_its_tokens():
    offsets = [(0, 3), (4, 8), (8, 10), (11, 15)]
    assert token_span(offsets, (4, 10)) == (1, 2) and token_span(offsets, (5, 9)) == (1, 2)
    assert token_span(offsets, (0, 3)) == (0, 0) and token_span(offsets, (-1, -1)) == (-1, -1)


# ---- transformers ----


def test_transformers_computes_the_same_logits(base, tmp_path):
    from transformers import AutoTokenizer, BertForQuestionAnswering

    model = firth.QuestionAnswerer(**QUICK).fit(asked(), ONE, base)
    model.save(tmp_path / "ours")
    net = BertForQuestionAnswering.from_pretrained(tmp_path / "ours").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "ours")
    data = asked(5)
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
    back = firth.load(tmp_path / "theirs")
    assert (
        back.answer(data["question"], data["passage"])[0].text
        == model.answer(data["question"], data["passage"])[0].text
    )


# ---- no answer ----


def test_no_answer_is_learned_when_asked_for(base):
    """Half of the passages don't tell: those of another question."""
    data = asked(120)
    passages = [passage if row % 2 else "the forest" for row, passage in enumerate(data["passage"])]
    answers = [answer if row % 2 else None for row, answer in enumerate(data["answer"])]
    known = {"question": data["question"], "passage": passages, "answer": answers}
    with pytest.raises(firth.FirthError, match=r"60 of 120 questions have no answer .* unanswerable=True"):
        firth.QuestionAnswerer(held_out=0.0).fit(known, ONE, base)
    settings = {**QUICK, "epochs": 15, "learning_rate": 3e-3, "held_out": 0.0}
    model = firth.QuestionAnswerer(**settings, unanswerable=True).fit(known, ONE, base)
    found = model.answer(data["question"], passages)
    told = [bool(span.text) for span in found]
    assert np.mean([told[row] == bool(row % 2) for row in range(120)]) > 0.9
    assert all((span.score >= 0) == bool(span.text) for span in found)
    sure = firth.QuestionAnswerer(**settings, unanswerable=True, margin=1e6).fit(known, ONE, base)
    assert not any(span.text for span in sure.answer(data["question"], passages))


# ---- data, and what is wrong with them ----


def squad(answers):
    qas = [{"id": f"q{n}", "question": "who ?", "answers": each} for n, each in enumerate(answers)]
    return {"data": [{"title": "t", "paragraphs": [{"context": "the old king and the king", "qas": qas}]}]}


def test_squads_files_are_read(tmp_path):
    document = squad([[{"text": "king", "answer_start": 8}, {"text": "old king", "answer_start": 4}], []])
    document["data"][0]["paragraphs"][0]["qas"][1]["is_impossible"] = True
    (tmp_path / "s.json").write_text(json.dumps(document))
    first, second = firth.Questions(tmp_path / "s.json")
    assert first == Question("q0", "who ?", "the old king and the king", ("king", "old king"), (8, 4))
    assert second.answers == ()
    (tmp_path / "bad.json").write_text('{"data": [{"paragraphs": [{}]}]}')
    with pytest.raises(firth.FirthError) as error:
        firth.Questions(tmp_path / "bad.json")
    assert error.value.code == "malformed_data" and error.value.values["reason"] == "missing key 'qas'"
    for start in ("8", 8.5, [8]):
        (tmp_path / "bad.json").write_text(json.dumps(squad([[{"text": "king", "answer_start": start}]])))
        with pytest.raises(firth.FirthError, match="answer_start must be a whole number"):
            firth.Questions(tmp_path / "bad.json")
    with pytest.raises(firth.FirthError, match=r"it has question, context.* \(--passage-column\)"):
        firth.Questions({"question": ["a"], "context": ["b"]})


def test_an_answer_stands_where_it_is_said_or_nearest():
    assert answer_span("the king and the king", "king", 17) == (17, 21)
    assert answer_span("the king and the king", "king", 15) == (17, 21)
    assert answer_span("the king and the king", "king", None) == (4, 8)
    assert answer_span("the king", "queen", 4) == (-1, -1)


def test_wrong_answers_are_listed_by_name(base, tmp_path):
    text = [
        [{"text": "king", "answer_start": 8}],
        [{"text": "queen", "answer_start": 8}],
        [{"text": "king", "answer_start": 9}],
    ]
    (tmp_path / "s.json").write_text(json.dumps(squad(text)))
    with pytest.warns(firth.FirthWarning) as told:
        model = firth.QuestionAnswerer(**QUICK, held_out=0.0).fit(firth.Questions(tmp_path / "s.json"), ONE, base)
    notes = {note.message.code: str(note.message) for note in told if isinstance(note.message, firth.FirthWarning)}
    for code, id in (("answers_not_found", "q1"), ("answers_moved", "q2")):
        assert notes[code].startswith("1 of 3 ") and notes[code].endswith(f": {id}.")
    assert model.training["answers_not_found"] == ["q1"] and model.training["answers_moved"] == ["q2"]
    assert model.training["questions"] == 3 and model.training["windows"] == 2


def test_what_cannot_be_answered_is_refused(base):
    with pytest.raises(firth.FirthError, match="begins with a BERT: a GPT"):
        firth.QuestionAnswerer().fit(asked(), ONE, tiny_gpt())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(firth.FirthError, match="none of 1 questions has an answer"):
            firth.QuestionAnswerer(held_out=0.0).fit({"question": ["a"], "passage": ["b"], "answer": ["c"]}, ONE, base)
    model = firth.QuestionAnswerer(**QUICK).fit(asked(), ONE, base)
    with pytest.raises(firth.FirthError, match="a list of as many passages"):
        model.answer(["a", "b"], ["c"])
    with pytest.warns(firth.FirthWarning, match="1 questions have more than 64 tokens"):
        model.answer(["king " * 100], ["the king"])


def test_held_out_questions_are_of_other_passages(base):
    from firth.finetuning.question_answering import by_passages

    rows = [Question(str(n), "q", f"passage {n // 5}", (), ()) for n in range(50)]
    train, dev = by_passages(rows, 0.3, 1)
    assert len(dev) == 15 and not {row.passage for row in train} & {row.passage for row in dev}


def test_an_older_folder_has_a_pooler_that_nobody_asks(base, tmp_path):
    from safetensors.numpy import load_file, save_file
    from transformers import BertForQuestionAnswering

    model = firth.QuestionAnswerer(**QUICK).fit(asked(), ONE, base)
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
    data = asked(3)
    found = firth.load(tmp_path / "theirs").answer(data["question"], data["passage"])
    assert [span.text for span in found] == [span.text for span in model.answer(data["question"], data["passage"])]
