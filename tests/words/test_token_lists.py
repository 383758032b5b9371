"""Documents given as lists of tokens, and functions as tokenizers: a model splits text as in training."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusing import refuses, warns_code

import firth
from firth.core.embedding import EmbedsTexts
from firth.core.model import HasVectors
from firth.core.report import Nothing
from firth.data.tokens import read_tokens

WORDS = [["Apple", "c++", "runs", "on", "#tag"], ["apple", "runs", "c++", "Apple"], ["#tag", "on", "Apple", "runs"]]
LISTS = WORDS * 20
PLAIN = [["the", "king", "sleeps"], ["the", "dog", "sleeps"]] * 20
SMALL: dict[str, Any] = {"dim": 8, "min_count": 1, "epochs": 1}
METHODS = [
    firth.SkipGram(**SMALL),
    firth.CBOW(**SMALL),
    firth.FastText(**SMALL, buckets=100),
    firth.GloVe(**SMALL),
    firth.PMI(dim=2, min_count=1),
    firth.Doc2Vec(**SMALL),
    firth.Counts(),
    firth.TfIdf(),
    firth.LSA(dim=2),
    firth.FastTextClassifier(**SMALL),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
RUN = firth.Run(report=Nothing(), deterministic=True)


def known(model, texts):
    """The number of known words of each text."""
    return model.embed_with_counts(texts).known.tolist()


def by_comma(text: str) -> list[str]:
    return text.split(",")


def by_bar(text: str) -> list[str]:
    return text.split("|")


def data_of(method: firth.Method, documents: Any) -> Any:
    """Return the documents, with labels if the method is a classifier."""
    return [(document, "ab"[i % 2]) for i, document in enumerate(documents)] if method.data.has_labels else documents


def with_tokenizer(method: firth.Method, tokenizer: Any) -> firth.Method:
    return type(method)(**{**method.options(), "tokenizer": tokenizer})


def trained(method: firth.Method, documents: Any, **settings: Any) -> Any:
    return method.fit(data_of(method, documents), RUN, **settings)


# ---- lists of tokens ----


@every_method
def test_lists_of_tokens_can_be_trained_on_and_embedded(method):
    model = trained(method, LISTS)
    assert {"Apple", "apple", "c++", "#tag"} <= set(model.vocabulary.tokens)
    unseen = ["APPLE"] if method.method_name() != "fasttext" else []
    assert known(model, [["Apple", "c++", "#tag"], unseen]) == [3, 0]
    assert known(model, ["Apple c++ #tag", "apple"]) == [3, 1]  # raw text is split at whitespace
    assert (model.embed([["Apple", "c++"]]) == model.embed(["Apple c++"])).all()
    assert (model.embed([("Apple",), np.array(["Apple"]), "Apple"]) == model.embed(["Apple"] * 3)).all()
    assert (model.embed(["Apple"]) != model.embed(["apple"])).any()
    assert model.embed([[]]).shape == model.embed([""]).shape


@every_method
def test_a_model_of_lists_can_be_saved_and_loaded(method, tmp_path):
    model = trained(method, LISTS)
    model.save(tmp_path / "model")
    loaded = firth.load(tmp_path / "model")
    assert isinstance(loaded, EmbedsTexts)
    assert loaded.method == model.method
    assert loaded.method.options().items() >= {"tokenizer": "whitespace", "lowercase": False}.items()
    for texts in (["Apple c++", "#tag"], [["Apple", "c++"], ["#tag"]]):
        assert loaded.embed(texts).tobytes() == model.embed(texts).tobytes()


def test_predict_accepts_lists_of_tokens():
    examples = [(["c++", "runs"], "code"), (["Apple", "pie"], "food")] * 50
    model = firth.FastTextClassifier(dim=8, epochs=20, learning_rate=0.5).fit(examples, RUN)
    assert [labels[0][0] for labels in model.predict([["c++"], ["Apple"], "c++", "Apple"])] == ["code", "food"] * 2
    assert model.predict([["c++", "runs"]]) == model.predict(["c++ runs"])
    again = firth.FastTextClassifier(dim=8, epochs=20, learning_rate=0.5).fit(firth.LabeledTexts(iter(examples)), RUN)
    assert again.predict([["c++"]]) == model.predict([["c++"]])
    assert firth.evaluate.classification(model, firth.LabeledTexts(examples)).precision == 1.0


@every_method
def test_the_tokenizer_is_kept_if_it_can_produce_every_word(method):
    model = trained(method, PLAIN)
    assert model.method.splitting == method.splitting
    assert known(model, ["The king sleeps."]) == [3]


def test_the_tokenizer_of_tokens_is_stored():
    tokens = read_tokens(firth.Corpus(["ab ba"] * 20), tokenizer="characters", min_count=1)
    model = firth.SkipGram(**SMALL).fit(tokens, RUN)
    assert model.method.tokenizer == "characters" and known(model, ["ab"]) == [2]
    cut = firth.SkipGram(**SMALL).fit(read_tokens(tokens, max_size=2, min_count=1), RUN)
    assert cut.method.tokenizer == "characters"


def test_words_with_spaces_are_reported_as_unreachable():
    with warns_code("unreachable_words") as issued:
        model = firth.Counts().fit([["New York", "big"]])
    assert str(issued[0]).startswith("1 of 2 words")
    assert known(model, ["New York big", ["New York", "big"]]) == [1, 2]


def test_lists_in_all_accepted_containers():
    expected = firth.Counts().fit(WORDS).matrix.toarray().tolist()
    once = (document for document in WORDS)
    for data in (tuple(map(tuple, WORDS)), once, pd.Series(WORDS), firth.Corpus(WORDS), firth.Tokens.from_lists(WORDS)):
        assert firth.Counts().fit(data).matrix.toarray().tolist() == expected
    keyed = firth.Doc2Vec(**SMALL).fit([(f"d{i}", tokens, ["x"]) for i, tokens in enumerate(LISTS)], RUN)
    assert list(keyed.documents.keys[:2]) == ["d0", "d1"] and list(keyed.tags.keys) == ["x"]
    assert list(firth.Counts().fit([("a", ["x", "y"]), (None, ["z"])]).documents.keys) == ["a", "2"]


def test_invalid_lists_are_refused():
    for data in ([["a"], "b"], [["a"], None], [["a", 3]], [["a"], ["b", None]]):
        with refuses("invalid_type"):
            firth.Counts().fit(data)
    with refuses("invalid_type", number=1):
        firth.Tokens.from_lists(["a b", "c"])  # texts would be split into characters
    with refuses("wrong_input"):
        firth.BERT().fit(LISTS)
    model = firth.Counts().fit(LISTS)
    wrong: list[tuple[int, Any]] = [(0, [["a", 3]]), (1, [["a"], None]), (0, [["a", ["b"]]])]
    for number, texts in wrong:
        with refuses("invalid_type", path=number, expected="str or lists of str"):
            model.embed(texts)


def test_continued_training_with_lists(tmp_path):
    first = firth.SkipGram(**SMALL).fit(LISTS, RUN)
    again = firth.SkipGram(**SMALL).fit([["Apple", "C#"]] * 9, RUN, start=first)
    assert again.method.tokenizer == "whitespace" and {"c++", "C#"} <= set(again.vocabulary.tokens)
    with refuses("incompatible_start"):  # raw text would be split in another way
        firth.SkipGram(**SMALL).fit(["Apple runs"] * 9, RUN, start=first)
    same = firth.SkipGram(**SMALL, tokenizer="whitespace", lowercase=False)
    texts = same.fit(["Apple runs C#"] * 9, RUN, start=first)
    assert {"c++", "C#"} <= set(texts.vocabulary.tokens)


def test_lists_keep_the_tokenizer_of_start_and_report_unreachable_words():
    first = firth.SkipGram(**SMALL).fit(["the king sleeps"] * 9, RUN)
    with warns_code("unreachable_words") as issued:
        again = firth.SkipGram(**SMALL).fit([["the", "C#"]] * 9, firth.Run(deterministic=True), start=first)
    assert len(issued) == 1
    assert again.method.tokenizer == "words" and known(again, ["The C#", ["the", "C#"]]) == [1, 2]


def test_training_into_a_folder_from_lists(tmp_path):
    tokens = firth.Tokens.from_lists(LISTS)
    method = firth.SkipGram(**SMALL)
    assert firth.train(method, tokens, tmp_path / "model", run=RUN).status == "trained"
    again = firth.train(method, tokens, tmp_path / "model", run=RUN)
    assert again.status == "already finished" and again.model.method.tokenizer == "whitespace"
    assert known(again.model, ["Apple c++"]) == [2]


# ---- functions ----


@every_method
def test_a_function_as_tokenizer(method, tmp_path):
    model = trained(with_tokenizer(method, by_comma), ["Apple pie,c++"] * 20 + ["c++,runs,Apple pie"] * 20)
    assert {"Apple pie", "c++"} <= set(model.vocabulary.tokens)
    assert known(model, ["Apple pie,c++"]) == [2]
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model/config.json").read_text())["options"]["tokenizer"] == "callable:by_comma"
    loaded = firth.load(tmp_path / "model", tokenizer=by_comma)
    assert isinstance(loaded, EmbedsTexts) and loaded.method == model.method
    assert loaded.embed(["Apple pie,c++"]).tobytes() == model.embed(["Apple pie,c++"]).tobytes()


@every_method
def test_without_its_tokenizer_a_model_only_embeds_lists(method, tmp_path):
    trained(with_tokenizer(method, by_comma), ["a,b", "b,c,a"] * 20).save(tmp_path / "model")
    without = firth.load(tmp_path / "model")
    assert isinstance(without, EmbedsTexts) and isinstance(without, HasVectors)
    assert len(next(iter(without.tables.values()))) and without.embed([]).shape[0] == 0
    complete = firth.load(tmp_path / "model", tokenizer=by_comma)
    assert isinstance(complete, EmbedsTexts)
    assert without.embed([["a", "b"]]).tobytes() == complete.embed(["a,b"]).tobytes()
    with refuses("missing_tokenizer", name="by_comma"):
        without.embed(["a,b"])
    without.save(tmp_path / "copy")  # the name is saved again
    assert firth.load(tmp_path / "copy", tokenizer=by_comma).method == complete.method


def test_another_function_is_refused(tmp_path):
    firth.Counts(tokenizer=by_comma).fit(["a,b"]).save(tmp_path / "model")
    with refuses("invalid_tokenizer", expected="by_comma", got="by_bar"):
        firth.load(tmp_path / "model", tokenizer=by_bar)
    firth.Counts().fit(["a b"]).save(tmp_path / "plain")
    with refuses("invalid_tokenizer", expected="words"):
        firth.load(tmp_path / "plain", tokenizer=by_bar)


def test_continued_training_needs_the_function(tmp_path):
    method = firth.SkipGram(**SMALL, tokenizer=by_comma)
    method.fit(["a,b"] * 9, RUN).save(tmp_path / "model")
    for data in (["c,a"] * 9, [["c", "a"]] * 9):
        with refuses("missing_tokenizer", name="by_comma"):
            method.fit(data, RUN, start=firth.load(tmp_path / "model"))
    start = firth.load(tmp_path / "model", tokenizer=by_comma)
    again = method.fit(["c,a"] * 9, RUN, start=start)
    assert set(again.vocabulary.tokens) == {"a", "b", "c"} and again.method.tokenizer is by_comma
    for other in (firth.SkipGram(**SMALL), firth.SkipGram(**SMALL, tokenizer=by_bar)):
        with refuses("incompatible_start", expected=str(other.splitting), got=str(method.splitting)):
            other.fit(["c,a"] * 9, RUN, start=start)


def test_a_finished_model_with_a_function_is_not_reused(tmp_path):
    """The function of that name may have changed."""
    (tmp_path / "texts.txt").write_text("a,b\n" * 9)
    method, data = firth.SkipGram(**SMALL, tokenizer=by_comma), firth.Corpus(tmp_path / "texts.txt")
    done = firth.train(method, data, tmp_path / "model", run=RUN)
    assert known(done.model, ["a,b"]) == [2]
    with refuses("other_run"):
        firth.train(method, data, tmp_path / "model", run=RUN)
    with refuses("other_run"):
        firth.train(firth.SkipGram(**SMALL, tokenizer=by_bar), data, tmp_path / "model", run=RUN)


class StoppedError(Exception):
    pass


def test_a_run_is_not_resumed_with_a_different_function(tmp_path, monkeypatch):
    from firth.core.checkpoint import Checkpoints

    def splitter(sign: str) -> Any:
        def split(text: str) -> list[str]:
            return text.split(sign)

        return split

    monkeypatch.setattr(Checkpoints, "due", lambda self: self.folder is not None)
    save = Checkpoints.save

    def stop(self, arrays, state):
        save(self, arrays, state)
        raise StoppedError

    method = firth.SkipGram(dim=8, min_count=1, epochs=50, tokenizer=splitter(","))
    texts = ["a,b c,d"] * 50
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", stop)
        with pytest.raises(StoppedError):
            firth.train(method, texts, tmp_path / "model", run=RUN)
    other = firth.SkipGram(dim=8, min_count=1, epochs=50, tokenizer=splitter(" "))
    with refuses("other_run"):
        firth.train(other, texts, tmp_path / "model", run=RUN)
    assert firth.train(method, texts, tmp_path / "model", run=RUN).status == "resumed"


def test_functions_without_a_name_or_without_tokens_are_refused():
    for nameless in (lambda text: text.split(), functools.partial(by_comma)):
        with refuses("invalid_value", name="tokenizer"):
            firth.SkipGram(tokenizer=nameless)

    def gives(answer: Any) -> Any:
        def answers(text: str) -> Any:
            return answer

        return answers

    for answer in ("a b", None, [1, 2], ["a", None]):
        with refuses("invalid_type"):
            firth.Counts(tokenizer=gives(answer)).fit(["a b"])


def test_lists_with_a_function_for_raw_text():
    model = firth.Counts(tokenizer=by_comma).fit([["Apple pie", "c++"]])
    assert model.method.tokenizer is by_comma and known(model, ["Apple pie,c++"]) == [2]
