"""What holds for every method, whoever adds it: a new file under `methods` is tested here without a change."""

from __future__ import annotations

import dataclasses
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from refusing import refuses
from samples import numbers, sample_of, sentences, texts
from tiny import tiny_bert

import firth
from firth.cli.train import train_command
from firth.core import registry
from firth.core.embedding import EmbedsTexts
from firth.core.model import (
    Answers,
    Contextual,
    Embeds,
    Estimates,
    Fills,
    HasVectors,
    Inverts,
    Predicts,
    Recommends,
    Samples,
    TagsWords,
)
from firth.core.options import Option, options_of
from firth.core.report import Nothing, Silence
from firth.core.vectors import unit_rows

#: Models this small learn nothing, and say so.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}:firth.FirthWarning")
    for text in ("Nothing was learned", "A simple baseline is better")
]
METHODS = {name: registry.method(name) for name in sorted(registry.method_classes())}
OPTIONS = [
    pytest.param(method, option, id=f"{name}.{option.name}")
    for name, method in METHODS.items()
    for option in options_of(method)
]
#: Small values of options that methods share, to be quick.
SMALL = {
    "dim": 12,
    "epochs": 2,
    "min_count": 2,
    "vocabulary_size": 300,
    "layers": 1,
    "context_length": 64,
    "batch_tokens": 2048,
}

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def small(method: type[firth.Method]) -> firth.Method:
    names = {option.name for option in options_of(method)}
    return method(**{name: value for name, value in SMALL.items() if name in names})


def data_of(method: type[firth.Method]) -> Any:
    return sample_of(method).data()


def fitted(method: type[firth.Method], run: firth.Run = firth.Run()) -> firth.Model:
    """A small model of the method, beginning with a small one where it needs one."""
    return small(method).fit(data_of(method), run, tiny_bert() if method.needs_start else None)


def outputs(model: firth.Model, of: Callable[[np.ndarray], Any] = np.ndarray.tobytes) -> dict[str, Any]:
    """Everything a model can be asked for; arrays as `of` makes them comparable."""
    found: dict[str, Any] = {}
    inputs = sample_of(type(model.method)).inputs
    if isinstance(model, HasVectors):
        found |= {f"{name} keys": list(table.keys) for name, table in model.tables.items()}
        found |= {name: of(table.matrix) for name, table in model.tables.items()}
    if isinstance(model, Predicts):
        found["predict"] = model.predict(inputs(), k=3)
    if isinstance(model, Estimates):
        found["estimate"] = of(model.estimate(inputs()))
    if isinstance(model, TagsWords):
        found["tag"] = model.tag(inputs())
    if isinstance(model, Answers):
        found["answer"] = model.answer(["who sleeps"] * 2, ["the king sleeps", ""])
    if isinstance(model, Embeds):
        found["embed"] = of(model.embed(inputs()))
    if isinstance(model, Contextual):
        found["words"] = [of(each.vectors) for each in model.word_vectors(texts(), layers=[0, -1])]
    if isinstance(model, Fills) and not type(model.method).needs_start:
        found["fill"] = model.fill("the [MASK] sleeps in the [MASK]")
    if isinstance(model, Inverts):
        found["reconstruct"] = model.reconstruct(inputs()).to_dict()
    if isinstance(model, Samples):
        found["sample"] = model.sample(5, seed=3).to_dict()
    if isinstance(model, Recommends):
        found["scores"] = of(model.scores(model.user_rows(model.tables["users"].keys[:5])))
    return found


def asked_at_once(model: firth.Model) -> list[dict[str, Any]]:
    """What three threads are told that begin together, before what is read at the first use is read."""
    together, threads = threading.Barrier(3), torch.get_num_threads()

    def ask(_: int) -> dict[str, Any]:
        torch.set_num_threads(threads)  # new threads have another number, on which the last bits depend
        together.wait()
        return outputs(model)

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(ask, range(3)))


@every_method
def test_it_is_found_by_name_and_described_in_a_line(method):
    name = method.method_name()
    assert registry.method(name) is method and getattr(firth, method.__name__) is method
    assert method.summary and "\n" not in method.summary and len(method.summary) <= 110
    assert not method.summary.endswith(".") and method.__doc__
    assert 1 <= len(method.limits) <= 3  # for the model card
    assert all(limit[0].isupper() and limit.endswith(".") and len(limit) <= 120 for limit in method.limits)


@every_method
def test_settings_hold_nothing_learned(method):
    settings = method()
    assert settings == method() and settings.options() == {item.name: item.default for item in options_of(method)}
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.dim = 3
    with refuses("unknown_option", kind=method.__name__, name="no_such_option"):
        method(no_such_option=1)


@pytest.mark.parametrize(("method", "option"), OPTIONS)
def test_an_option_has_meaning_default_and_range(method, option):
    assert option.help and option.help[0] == option.help[0].lower() and not option.help.endswith(".")
    assert option.kind in (int, float, bool, str)
    assert option.default is None or option.problem(option.default) is None


def outside(option: Option) -> list[Any]:
    """Values that the option must refuse."""
    if option.choices:
        return ["nonsense", 3]
    if option.kind is bool:
        return ["yes", 2]
    if option.kind is str:
        return [3]
    values: list[Any] = ["many", True]
    values += [math.nan, math.inf] if option.kind is float else [1.5]
    values += [option.low - 1] if option.low is not None else []
    values += [option.high + 1] if option.high is not None else []
    return values


@pytest.mark.parametrize(("method", "option"), OPTIONS)
def test_a_value_outside_is_refused_by_name(method, option):
    for value in outside(option):
        with pytest.raises(firth.FirthError) as refused:
            method(**{option.name: value})
        text = str(refused.value)
        assert text.startswith(f"{method.__name__}.{option.name} must be ") and text.endswith(f"; got {value!r}.")


@every_method
def test_its_options_are_flags_of_their_own(method):
    """Two options of one name (a method's and a run's, or one of `train` itself) would shadow each other."""
    flags = [flag for param in train_command("method", method).params for flag in (*param.opts, *param.secondary_opts)]
    assert len(flags) == len(set(flags))
    assert {"--" + option.name.replace("_", "-") for option in options_of(method)} < set(flags)


@every_method
def test_saved_and_loaded_it_is_the_same(method, tmp_path: Path):
    model = fitted(method)
    model.save(tmp_path / "model")
    loaded = firth.load(tmp_path / "model")
    chosen = small(method).resolved(**model.training.get("automatic", {}))  # by the size of the data
    assert type(loaded) is type(model) and loaded.method == model.method == chosen
    assert outputs(model) and outputs(loaded) == outputs(model)
    assert loaded.training == model.training
    assert asked_at_once(firth.load(tmp_path / "model")) == [outputs(model)] * 3


@every_method
def test_deterministic_is_the_same_for_any_number_of_threads(method):
    one, two = (outputs(fitted(method, firth.Run(deterministic=True, threads=threads, seed=3))) for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize("method", [method for method in METHODS.values() if not method.distributed])
def test_a_cluster_is_refused_by_what_does_not_use_it(method):
    with refuses("unsupported_cluster", method=method.__name__, cluster="processes"):
        fitted(method, firth.Run(cluster="processes"))


@pytest.mark.parametrize(
    "method", [method for method in METHODS.values() if not (method.in_processes or method.trains_copies)]
)
def test_workers_need_a_cluster(method):
    with refuses("missing_option", option="workers", missing="cluster"):
        fitted(method, firth.Run(workers=2))


@pytest.mark.parametrize(
    "method", [method for method in METHODS.values() if method.distributed and issubclass(method.data, firth.Corpus)]
)
def test_a_cluster_gives_the_same_model(method, tmp_path, monkeypatch):
    """Methods that count and encode a corpus on a cluster; networks are tested with their training, and copies of
    tables, which depend on the number of workers, in tests/work/test_replicas.py."""
    monkeypatch.setattr("firth.data.corpus_shards.LEAST_BYTES", 2000)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "one"))
    (tmp_path / "text.txt").write_text("\n".join(sentences()))
    data = method.data.from_files([str(tmp_path / "text.txt")], {})
    cluster: dict[str, Any] = {"cluster": "processes", "workers": 2}
    one = small(method).fit(data, firth.Run(deterministic=True, **(cluster if method.trains_copies else {})))
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "two"))
    two = small(method).fit(data, firth.Run(deterministic=True, **cluster))
    assert outputs(two) == outputs(one)


@every_method
def test_what_inverts_and_samples_gives_rows_of_its_table(method):
    """Rebuilt are as many rows as were given; made up as many as were asked for, others for another seed."""
    data = data_of(method)
    model = small(method).fit(data, start=tiny_bert() if method.needs_start else None)
    if isinstance(model, Inverts):
        again = model.reconstruct(data)
        assert (len(again), again.names) == (len(data), data.names)
        assert len(model.reconstruct(data.slice(0, 0))) == 0
    if isinstance(model, Samples):
        made, other = (model.sample(7, seed=seed) for seed in (1, 2))
        assert made.to_dict() != other.to_dict()
        if isinstance(data, firth.Table):
            assert len(made) == 7 and made.names == data.names
            assert [made.type(name) for name in made.names] == [data.type(name) for name in data.names]
        else:  # users with several items each
            users = firth.Interactions(made)
            assert len(users.users) == 7 and set(users.items) <= set(data.items)
        with refuses("invalid_value", option="n", got=0):
            model.sample(0)


READS_TEXTS = [
    method for method in METHODS.values() if method.data.has_texts and issubclass(method.model_class(), Embeds)
]


@pytest.mark.parametrize("method", READS_TEXTS)
def test_texts_without_known_words_have_a_vector(method):
    model = fitted(method)
    assert isinstance(model, Embeds)
    rows = model.embed(["", "zzyzx qwfpgj", "the king"])
    assert rows.shape[0] == 3 and rows.dtype == np.float32 and np.isfinite(rows).all()
    assert model.embed([]).shape == (0, rows.shape[1])
    for no_texts in (pd.DataFrame({"text": ["the king"]}), {"a text": 1}, 3, b"the king"):
        with refuses("invalid_type", got=type(no_texts).__name__):
            model.embed(no_texts)
    for missing in (None, float("nan")):
        with refuses("invalid_type", path=1):
            model.embed(["the king", missing])


class Steps(Silence):
    """Records the progress that a call reports."""

    def __init__(self) -> None:
        self.total, self.steps, self.ended = 0.0, list[float](), False

    def begin(self, task: str, total: float, unit: str) -> None:
        self.total = total

    def step(self, done: float, **metrics: float) -> None:
        self.steps.append(done)

    def end(self) -> None:
        self.ended = True


@pytest.mark.parametrize(
    "method", [method for method in METHODS.values() if issubclass(method.model_class(), EmbedsTexts)]
)
def test_embed_accepts_one_text_a_list_and_a_stream(method, monkeypatch):
    model = fitted(method)
    assert isinstance(model, EmbedsTexts) and isinstance(model, Embeds)
    texts = ["the king sleeps", "", "a sword", "the river", "zzyzx"]
    rows = model.embed(texts)
    for text, row in zip(texts, rows, strict=True):
        one = model.embed(text)
        assert one.shape == row.shape and np.allclose(one, row, atol=1e-5)
    monkeypatch.setattr(method.model_class(), "batch_texts", 2)
    read = list[str]()

    def stream() -> Iterator[str]:
        for text in texts:
            read.append(text)
            yield text

    assert np.allclose(model.embed(stream()), rows, atol=1e-5) and read == texts
    assert np.allclose(model.embed(firth.Corpus(texts)), model.embed(list(texts)), atol=1e-5)
    lengths = np.linalg.norm(model.embed(texts, normalize=True), axis=1)
    assert np.allclose(lengths, np.linalg.norm(rows, axis=1) > 0, atol=1e-5)
    progress = Steps()
    assert len(model.embed(texts, report=progress)) == 5 and progress.ended
    assert progress.total == 5 and progress.steps[-1] == 5
    with refuses("unknown_option", name="normalise"):
        model.embed(texts, normalise=True)
    with refuses("invalid_type", path=3):
        model.embed(iter(["the king", "", "a sword", 7]))  # type: ignore[arg-type]
    lists = [text.split() for text in texts]
    if model.accepts_token_lists:
        assert model.embed(lists).shape == rows.shape
    else:
        with refuses("invalid_type", path=0):
            model.embed(lists)
    assert model.embed_with_counts(texts).matrix.shape == rows.shape


@pytest.mark.parametrize("method", [method for method in METHODS.values() if method.data is firth.Table])
def test_rows_of_a_table_can_be_normalized(method):
    model, table = fitted(method), sample_of(method).inputs()
    assert isinstance(model, Embeds)
    rows, unit = model.embed(table), model.embed(table, normalize=True)
    assert np.allclose(unit, unit_rows(rows)) and not np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


@pytest.mark.parametrize(
    "method", [method for method in METHODS.values() if issubclass(method.model_class(), (Contextual, Fills))]
)
def test_what_reads_words_in_context_or_fills_blanks(method):
    model = fitted(method)
    if isinstance(model, Contextual):
        text = "The king's house"
        (found,) = model.word_vectors([text], layers=[0, -1], combine="concat")
        assert [text[begin:end] for begin, end in found.offsets] == found.words and "house" in found.words
        dim = tiny_bert().size.dim if method.needs_start else SMALL["dim"]
        assert found.vectors.shape == (len(found.words), 2 * dim) and np.isfinite(found.vectors).all()
        assert model.static(sentences()[:50], 3).matrix.shape == (3, dim)
    if isinstance(model, Fills) and not method.needs_start:  # what learns another task gives the head for blanks up
        blanks = model.fill("the [MASK] sleeps", k=4, other="in the [MASK]")
        assert [len(blank) for blank in blanks] == [4, 4]
        for blank in blanks:
            chances = [chance for _, chance in blank]
            assert chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1
        with refuses("missing_mask"):
            model.fill("the king sleeps")


@every_method
def test_nothing_to_learn_from_is_an_error(method):
    with pytest.raises(firth.FirthError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small(method).fit(sample_of(method).nothing(), start=tiny_bert() if method.needs_start else None)


@every_method
def test_labels_as_a_second_argument_are_refused(method):
    with refuses("invalid_type", got="list"):
        small(method).fit(["a text", "another"], ["a", "b"])  # type: ignore[arg-type]
    with refuses("invalid_type", got="dict"):
        small(method).fit(["a text"], run={"seed": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [method for method in METHODS.values() if method.needs_start])
def test_a_missing_or_unsuitable_start_is_refused(method):
    with refuses("missing_start"):
        small(method).fit(data_of(method))
    with refuses("incompatible_start"):
        small(method).fit(data_of(method), start=firth.OneHot().fit(numbers(22)))


REFUSED = ("unsupported_start", "incompatible_start", "missing_start")


@every_method
def test_start_is_refused_or_continued_from(method):
    """Nothing of it is lost, and the result depends on it."""
    sample, run = sample_of(method), firth.Run(deterministic=True, report=Nothing())
    data = sample.more or sample.data
    starts: list[firth.Model]
    if method.needs_start:
        starts = [tiny_bert(), tiny_bert(lively=True)]
    else:
        other = numbers(23) if method.data is firth.Table else None
        another = firth.Run(deterministic=True, seed=2)
        starts = [fitted(method, run), small(method).fit(other or data_of(method), another)]
    try:
        found = [small(method).fit(data(), run, start) for start in starts]
    except firth.FirthError as error:
        assert error.code in REFUSED
        return
    assert outputs(found[0]) != outputs(found[1])
    for start, model in zip(starts, found, strict=True):
        if isinstance(start, HasVectors) and not method.needs_start:
            assert isinstance(model, HasVectors)
            for name, table in start.tables.items():
                assert set(table.keys) <= set(model.tables[name].keys), name
        if isinstance(start, Recommends):
            assert isinstance(model, Recommends)
            assert len(model.seen.items) >= len(start.seen.items)


@every_method
def test_a_start_of_another_kind_is_refused(method):
    with pytest.raises(firth.FirthError) as refused:
        other = firth.OneHot().fit(numbers(22)) if method.needs_start else firth.Counts().fit(sentences()[:9])
        small(method).fit(data_of(method), start=other)
    assert refused.value.code in REFUSED
