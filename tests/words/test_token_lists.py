"""Documents that are lists of tokens, and tokenizers that are functions: a model splits text as it was trained."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import firth
from firth.core.report import Nothing
from firth.data.tokens import read_tokens

WORDS = [["Apple", "c++", "runs", "on", "#tag"], ["apple", "runs", "c++", "Apple"], ["#tag", "on", "Apple", "runs"]]
LISTS = WORDS * 20
PLAIN = [["the", "king", "sleeps"], ["the", "dog", "sleeps"]] * 20
SMALL = {"dim": 8, "min_count": 1, "epochs": 1}
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


def by_comma(text: str) -> list[str]:
    return text.split(",")


def by_bar(text: str) -> list[str]:
    return text.split("|")


def data_of(method: firth.Method, documents: Any) -> Any:
    """The documents, with labels where the method learns labels."""
    return [(document, "ab"[i % 2]) for i, document in enumerate(documents)] if method.kind == "labelled" else documents


def with_tokenizer(method: firth.Method, tokenizer: Any) -> firth.Method:
    return type(method)(**{**method.options(), "tokenizer": tokenizer})


def trained(method: firth.Method, documents: Any, **settings: Any) -> Any:
    return method.fit(data_of(method, documents), RUN, **settings)


# ---- lists of tokens ----


@every_method
def test_fit_takes_lists_and_embed_finds_their_words(method):
    model = trained(method, LISTS)
    assert {"Apple", "apple", "c++", "#tag"} <= set(model.vocabulary.tokens)
    found = model.pool([["Apple", "c++", "#tag"], ["APPLE"] if method.method_name() != "fasttext" else []])
    assert found.known.tolist() == [3, 0]
    assert model.pool(["Apple c++ #tag", "apple"]).known.tolist() == [3, 1]  # raw text: at white space, case kept
    assert (model.embed([["Apple", "c++"]]) == model.embed(["Apple c++"])).all()
    assert (model.embed([("Apple",), np.array(["Apple"]), "Apple"]) == model.embed(["Apple"] * 3)).all()
    assert (model.embed(["Apple"]) != model.embed(["apple"])).any()
    assert model.embed([[]]).shape == model.embed([""]).shape


@every_method
def test_a_model_of_lists_is_the_same_when_it_is_loaded(method, tmp_path):
    model = trained(method, LISTS)
    model.save(tmp_path / "model")
    loaded = firth.load(tmp_path / "model")
    assert loaded.method == model.method and (loaded.method.tokenizer, loaded.method.lowercase) == ("whitespace", False)
    for texts in (["Apple c++", "#tag"], [["Apple", "c++"], ["#tag"]]):
        assert loaded.embed(texts).tobytes() == model.embed(texts).tobytes()


def test_predictions_take_lists():
    examples = [(["c++", "runs"], "code"), (["Apple", "pie"], "food")] * 50
    model = firth.FastTextClassifier(dim=8, epochs=20, learning_rate=0.5).fit(examples, RUN)
    assert [found[0][0] for found in model.predict([["c++"], ["Apple"], "c++", "Apple"])] == ["code", "food"] * 2
    assert model.predict([["c++", "runs"]]) == model.predict(["c++ runs"])
    again = firth.FastTextClassifier(dim=8, epochs=20, learning_rate=0.5).fit(firth.LabeledTexts(iter(examples)), RUN)
    assert again.predict([["c++"]]) == model.predict([["c++"]])
    assert firth.evaluate.classification(model, firth.LabeledTexts(examples)).precision == 1.0


@every_method
def test_a_tokenizer_that_gives_back_every_word_is_kept(method):
    """Then texts with capitals and full stops are still found."""
    model = trained(method, PLAIN)
    assert model.method.splitting == method.splitting
    assert model.pool(["The king sleeps."]).known.tolist() == [3]


def test_tokens_that_were_read_by_a_tokenizer_are_split_by_it():
    tokens = read_tokens(firth.Corpus(["ab ba"] * 20), tokenizer="characters", min_count=1)
    model = firth.SkipGram(**SMALL).fit(tokens, RUN)
    assert model.method.tokenizer == "characters" and model.pool(["ab"]).known.tolist() == [2]
    cut = firth.SkipGram(**SMALL).fit(read_tokens(tokens, max_size=2, min_count=1), RUN)
    assert cut.method.tokenizer == "characters"


def test_words_with_blanks_are_found_in_lists_alone_and_that_is_said():
    with pytest.warns(firth.FirthWarning, match="1 of 2 words") as said:
        model = firth.Counts().fit([["New York", "big"]])
    assert said[0].message.code == "unreachable_words"
    assert model.pool(["New York big", ["New York", "big"]]).known.tolist() == [1, 2]


def test_lists_come_in_every_shape():
    wanted = firth.Counts().fit(WORDS).matrix.toarray().tolist()
    once = (document for document in WORDS)
    for data in (tuple(map(tuple, WORDS)), once, pd.Series(WORDS), firth.Corpus(WORDS), firth.Tokens.from_lists(WORDS)):
        assert firth.Counts().fit(data).matrix.toarray().tolist() == wanted
    keyed = firth.Doc2Vec(**SMALL).fit([(f"d{i}", tokens, ["x"]) for i, tokens in enumerate(LISTS)], RUN)
    assert list(keyed.documents.keys[:2]) == ["d0", "d1"] and list(keyed.tags.keys) == ["x"]
    assert list(firth.Counts().fit([("a", ["x", "y"]), (None, ["z"])]).documents.keys) == ["a", "2"]


def test_what_is_no_list_of_tokens_is_refused():
    for data in ([["a"], "b"], [["a"], None], [["a", 3]], [["a"], ["b", None]]):
        with pytest.raises(firth.FirthError) as refused:
            firth.Counts().fit(data)
        assert refused.value.code == "invalid_type"
    with pytest.raises(firth.FirthError) as refused:
        firth.Tokens.from_lists(["a b", "c"])  # texts: each would fall apart into characters
    assert refused.value.code == "invalid_type" and refused.value.values["number"] == 1
    with pytest.raises(firth.FirthError) as refused:
        firth.BERT().fit(LISTS)
    assert refused.value.code == "wrong_input"
    model = firth.Counts().fit(LISTS)
    for odd in ([["a", 3]], [["a"], None], [["a", ["b"]]]):
        with pytest.raises(firth.FirthError) as refused:
            model.embed(odd)
        assert refused.value.code == "invalid_type"


def test_going_on_with_lists(tmp_path):
    first = firth.SkipGram(**SMALL).fit(LISTS, RUN)
    again = firth.SkipGram(**SMALL).fit([["Apple", "C#"]] * 9, RUN, start=first)
    assert again.method.tokenizer == "whitespace" and {"c++", "C#"} <= set(again.vocabulary.tokens)
    with pytest.raises(firth.FirthError) as refused:  # raw text, split in another way
        firth.SkipGram(**SMALL).fit(["Apple runs"] * 9, RUN, start=first)
    assert refused.value.code == "incompatible_start"
    same = firth.SkipGram(**SMALL, tokenizer="whitespace", lowercase=False)
    texts = same.fit(["Apple runs C#"] * 9, RUN, start=first)
    assert {"c++", "C#"} <= set(texts.vocabulary.tokens)


def test_lists_of_a_model_of_texts_keep_its_splitting_and_lost_words_are_said():
    first = firth.SkipGram(**SMALL).fit(["the king sleeps"] * 9, RUN)
    with pytest.warns(firth.FirthWarning) as said:
        again = firth.SkipGram(**SMALL).fit([["the", "C#"]] * 9, firth.Run(deterministic=True), start=first)
    assert [note.message.code for note in said] == ["unreachable_words"]
    assert again.method.tokenizer == "words" and again.pool(["The C#", ["the", "C#"]]).known.tolist() == [1, 2]


def test_training_into_a_folder_from_lists(tmp_path):
    tokens = firth.Tokens.from_lists(LISTS)
    method = firth.SkipGram(**SMALL)
    assert firth.train(method, tokens, tmp_path / "model", run=RUN).status == "trained"
    again = firth.train(method, tokens, tmp_path / "model", run=RUN)
    assert again.status == "already finished" and again.model.method.tokenizer == "whitespace"
    assert again.model.pool(["Apple c++"]).known.tolist() == [2]


# ---- functions ----


@every_method
def test_a_tokenizer_may_be_a_function(method, tmp_path):
    model = trained(with_tokenizer(method, by_comma), ["Apple pie,c++"] * 20 + ["c++,runs,Apple pie"] * 20)
    assert {"Apple pie", "c++"} <= set(model.vocabulary.tokens)
    assert model.pool(["Apple pie,c++"]).known.tolist() == [2]
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model/config.json").read_text())["options"]["tokenizer"] == "callable:by_comma"
    loaded = firth.load(tmp_path / "model", tokenizer=by_comma)
    assert loaded.method == model.method
    assert loaded.embed(["Apple pie,c++"]).tobytes() == model.embed(["Apple pie,c++"]).tobytes()


@every_method
def test_without_its_function_a_model_is_vectors_alone(method, tmp_path):
    trained(with_tokenizer(method, by_comma), ["a,b", "b,c,a"] * 20).save(tmp_path / "model")
    bare = firth.load(tmp_path / "model")
    assert len(next(iter(bare.tables.values()))) and bare.embed([]).shape[0] == 0
    whole = firth.load(tmp_path / "model", tokenizer=by_comma)
    assert bare.embed([["a", "b"]]).tobytes() == whole.embed(["a,b"]).tobytes()
    with pytest.raises(firth.FirthError) as refused:
        bare.embed(["a,b"])
    assert refused.value.code == "missing_tokenizer" and refused.value.values["name"] == "by_comma"
    bare.save(tmp_path / "copy")  # the name is not lost
    assert firth.load(tmp_path / "copy", tokenizer=by_comma).method == whole.method


def test_another_function_is_refused(tmp_path):
    firth.Counts(tokenizer=by_comma).fit(["a,b"]).save(tmp_path / "model")
    with pytest.raises(firth.FirthError) as refused:
        firth.load(tmp_path / "model", tokenizer=by_bar)
    assert refused.value.code == "invalid_tokenizer"
    assert (refused.value.values["expected"], refused.value.values["got"]) == ("by_comma", "by_bar")
    firth.Counts().fit(["a b"]).save(tmp_path / "plain")
    with pytest.raises(firth.FirthError) as refused:
        firth.load(tmp_path / "plain", tokenizer=by_bar)
    assert refused.value.code == "invalid_tokenizer" and refused.value.values["expected"] == "words"


def test_going_on_needs_the_function(tmp_path):
    method = firth.SkipGram(**SMALL, tokenizer=by_comma)
    method.fit(["a,b"] * 9, RUN).save(tmp_path / "model")
    for data in (["c,a"] * 9, [["c", "a"]] * 9):
        with pytest.raises(firth.FirthError) as refused:
            method.fit(data, RUN, start=firth.load(tmp_path / "model"))
        assert refused.value.code == "missing_tokenizer"
    start = firth.load(tmp_path / "model", tokenizer=by_comma)
    again = method.fit(["c,a"] * 9, RUN, start=start)
    assert set(again.vocabulary.tokens) == {"a", "b", "c"} and again.method.tokenizer is by_comma
    for other in (firth.SkipGram(**SMALL), firth.SkipGram(**SMALL, tokenizer=by_bar)):
        with pytest.raises(firth.FirthError) as refused:
            other.fit(["c,a"] * 9, RUN, start=start)
        assert refused.value.code == "incompatible_start"


def test_a_finished_model_of_a_function_is_not_taken_for_granted(tmp_path):
    """The function of that name may do something else now."""
    (tmp_path / "texts.txt").write_text("a,b\n" * 9)
    method, data = firth.SkipGram(**SMALL, tokenizer=by_comma), firth.Corpus(tmp_path / "texts.txt")
    done = firth.train(method, data, tmp_path / "model", run=RUN)
    assert done.model.pool(["a,b"]).known.tolist() == [2]
    with pytest.raises(firth.FirthError) as refused:
        firth.train(method, data, tmp_path / "model", run=RUN)
    assert refused.value.code == "other_run"
    with pytest.raises(firth.FirthError) as refused:
        firth.train(firth.SkipGram(**SMALL, tokenizer=by_bar), data, tmp_path / "model", run=RUN)
    assert refused.value.code == "other_run"


class StoppedError(Exception):
    pass


def test_a_run_is_not_resumed_with_a_function_that_splits_otherwise(tmp_path, monkeypatch):
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
    with pytest.raises(firth.FirthError) as refused:
        firth.train(other, texts, tmp_path / "model", run=RUN)
    assert refused.value.code == "other_run"
    assert firth.train(method, texts, tmp_path / "model", run=RUN).status == "resumed"


def test_functions_that_cannot_be_known_again_or_give_no_tokens_are_refused():
    for nameless in (lambda text: text.split(), functools.partial(by_comma)):
        with pytest.raises(firth.FirthError) as refused:
            firth.SkipGram(tokenizer=nameless)
        assert refused.value.code == "invalid_value" and refused.value.values["name"] == "tokenizer"

    def gives(answer: Any) -> Any:
        def answers(text: str) -> Any:
            return answer

        return answers

    for odd in ("a b", None, [1, 2], ["a", None]):
        with pytest.raises(firth.FirthError) as refused:
            firth.Counts(tokenizer=gives(odd)).fit(["a b"])
        assert refused.value.code == "invalid_type"


def test_lists_with_a_function_for_raw_text():
    model = firth.Counts(tokenizer=by_comma).fit([["Apple pie", "c++"]])
    assert model.method.tokenizer is by_comma and model.pool(["Apple pie,c++"]).known.tolist() == [2]
