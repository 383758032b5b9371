"""Fine-tuning: logits equal to those of transformers, trials and resuming, frozen layers, defaults, invalid input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from breaking import Breaks, Notes
from refusing import refuses, warns_code
from tiny import tiny_bert, tiny_gpt

import firth
from firth.core.model import Estimates
from firth.core.registry import stored_method
from firth.core.report import Silence
from firth.data.world import World
from firth.finetuning.finetuning_loop import truncate
from firth.nets.encoder import Encoder

TEXTS = ["the king sleeps", "a river", "the queen of the forest sees the old king", "zzyzx"]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]
ONE = firth.Run(threads=1)
QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 8, "dropout": 0.0, "learning_rate": 1e-3}
GOLDEN = Path(__file__).parents[1] / "golden" / "methods-1"  # folders that an earlier version saved


@pytest.fixture(scope="module")
def base():
    return tiny_bert()


def examples(count: int = 40, **more):
    texts = [f"{text} {number}" for number, text in enumerate(World(seed=2).sentences(count))]
    return firth.Examples({"text": texts, "label": ["ab"[i % 2] for i in range(count)]}, **more)


def pair_examples(count: int = 40):
    texts = [f"{text} {number}" for number, text in enumerate(World(seed=2).sentences(2 * count))]
    columns = {"a": texts[:count], "b": texts[count:], "y": [i / 7 for i in range(count)]}
    return firth.Examples(columns, text="a", other="b", label="y")


def weights(model) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in model.net.state_dict().values())


def logits(model, texts):
    return model.logits(texts, None, Silence())


# ---- transformers ----


def theirs(folder, texts, kind):
    import transformers

    net = getattr(transformers, kind).from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        rows = [tokenizer(*([text] if isinstance(text, str) else text), return_tensors="pt") for text in texts]
        return net, tokenizer, np.concatenate([net(**row).logits.numpy() for row in rows])


@pytest.mark.parametrize("kind", ["texts", "pairs"])
def test_transformers_computes_the_same_logits(base, tmp_path, kind):
    method = firth.TextClassifier(**QUICK) if kind == "texts" else firth.TextRegressor(**QUICK)
    inputs = TEXTS if kind == "texts" else PAIRS
    model = method.fit(examples() if kind == "texts" else pair_examples(), ONE, base)
    model.save(tmp_path / "ours")
    net, tokenizer, expected = theirs(tmp_path / "ours", inputs, "BertForSequenceClassification")
    np.testing.assert_allclose(logits(model, inputs), expected, atol=1e-5)
    if kind == "texts":
        assert net.config.id2label == {0: "a", 1: "b"}
    else:
        assert net.config.problem_type == "regression" and net.config.num_labels == 1
        assert isinstance(model, Estimates)
        np.testing.assert_allclose(model.estimate(inputs), expected[:, 0], atol=1e-5)
    net.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    loaded = firth.load(tmp_path / "theirs")
    assert type(loaded) is type(model)
    np.testing.assert_allclose(logits(loaded, inputs), expected, atol=1e-5)
    assert not loaded.training.get("command")


def test_the_head_of_a_gpt_reads_the_last_token(tmp_path):
    model = firth.TextClassifier(**QUICK).fit(examples(), ONE, tiny_gpt())
    model.save(tmp_path / "ours")
    import transformers

    net = transformers.GPT2ForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    end = model.tokenizer.special_id("<|endoftext|>")
    ids = [[end, *model.tokenizer.encode(text).ids, end] for text in TEXTS]
    with torch.no_grad():
        expected = np.concatenate([net(torch.tensor([row])).logits.numpy() for row in ids])
    np.testing.assert_allclose(logits(model, TEXTS), expected, atol=1e-4)
    np.testing.assert_array_equal(logits(firth.load(tmp_path / "ours"), TEXTS), logits(model, TEXTS))
    net.save_pretrained(tmp_path / "theirs")
    model.tokenizer.save(tmp_path / "theirs" / "tokenizer.json")
    np.testing.assert_allclose(logits(firth.load(tmp_path / "theirs"), TEXTS), expected, atol=1e-4)
    # A folder may scale attention and normalize differently; saved again, it computes the same.
    config = net.config.to_dict() | {"layer_norm_epsilon": 0.01, "scale_attn_by_inverse_layer_idx": True}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    net = transformers.GPT2ForSequenceClassification.from_pretrained(tmp_path / "theirs").eval()
    with torch.no_grad():
        expected = np.concatenate([net(torch.tensor([row])).logits.numpy() for row in ids])
    firth.load(tmp_path / "theirs").save(tmp_path / "again")
    for folder in ("theirs", "again"):
        np.testing.assert_allclose(logits(firth.load(tmp_path / folder), TEXTS), expected, atol=1e-4)


def test_predictions_do_not_depend_on_the_batch(base):
    model = firth.TextClassifier(**QUICK, pooling="mean").fit(examples(), ONE, base)
    together = logits(model, TEXTS)
    np.testing.assert_allclose(together, np.concatenate([logits(model, [text]) for text in TEXTS]), atol=1e-5)


# ---- frozen layers ----


@pytest.mark.parametrize(("tune", "trained"), [("head", set()), ("1", {1}), ("all", {0, 1})])
def test_only_the_tuned_layers_change(base, tune, trained):
    model = firth.TextClassifier(**QUICK, tune=tune).fit(examples(), ONE, base)
    old, new = base.net.stack.blocks, model.net.base.stack.blocks
    for number, (a, b) in enumerate(zip(old, new, strict=True)):
        same = all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
        assert same == (number not in trained)
    assert isinstance(model.net.base, Encoder)
    same = torch.equal(base.net.input.tokens.weight, model.net.base.input.tokens.weight)
    assert same == (tune != "all")


def test_options_beyond_the_base_are_refused(base):
    with refuses("invalid_value", option="TextClassifier.tune", limit=2, got="3"):
        firth.TextClassifier(tune="3").fit(examples(), ONE, base)
    with refuses("invalid_value", option="TextClassifier.tune", got="top"):
        firth.TextClassifier(tune="top")
    with refuses("invalid_value", option="TextClassifier.learning_rates", got="1e-3;2"):
        firth.TextClassifier(learning_rates="1e-3;2")
    with refuses("invalid_value", option="TextClassifier.max_length", limit=128, got=500):
        firth.TextClassifier(max_length=500).fit(examples(), ONE, base)


def test_a_frozen_base_encodes_each_text_once(base, monkeypatch):
    """The head is the same as if the base encoded the texts in every epoch of every trial."""
    from firth.finetuning import finetuning_loop
    from firth.nets.encoder import Encoder

    tokens_read, forward = [], Encoder.forward

    def counted(net, ids, *rest):
        tokens_read.append(len(ids))
        return forward(net, ids, *rest)

    monkeypatch.setattr(Encoder, "forward", counted)
    data = examples(40)
    for pool in ("cls", "mean"):
        method = firth.TextClassifier(
            **{**QUICK, "epochs": 4}, tune="head", pooling=pool, learning_rates="1e-3,1e-2", max_length=32
        )
        tokens_read.clear()
        cached = method.fit(data, firth.Run(deterministic=True), base)
        tokens = sum(len(each) + 2 for each in base.tokenizer.ids_batch(data.texts(), special=False))
        assert sum(tokens_read) == tokens
        with monkeypatch.context() as patch:
            patch.setattr(finetuning_loop, "MAX_CACHE_BYTES", 0)
            with warns_code("vectors_not_cached"):
                uncached = method.fit(data, firth.Run(deterministic=True), base)
        assert sum(tokens_read) > 8 * tokens
        np.testing.assert_allclose(logits(cached, TEXTS), logits(uncached, TEXTS), atol=1e-4)
        assert cached.training["steps"] == uncached.training["steps"]


def test_a_frozen_base_encodes_each_tagged_sentence_once(base, monkeypatch):
    from firth.nets.encoder import Encoder

    tokens_read, forward = [], Encoder.forward

    def counted(net, ids, *rest):
        tokens_read.append(len(ids))
        return forward(net, ids, *rest)

    monkeypatch.setattr(Encoder, "forward", counted)
    tagged = [(text.split(), [word[0] for word in text.split()]) for text in World(seed=2).sentences(40)]
    firth.TokenClassifier(**{**QUICK, "epochs": 5}, tune="head").fit(firth.TaggedSentences(tagged), ONE, base)
    tokens = sum(len(base.tokenizer.encode(" ".join(words)).ids) for words, _ in tagged)  # with [CLS] and [SEP]
    assert sum(tokens_read) == tokens


def test_the_default_learning_rate_trains_a_head_on_a_frozen_base():
    """The learning rate of a whole network is far too low for one layer."""
    data = {
        "text": [f"the {['king', 'queen'][i % 2]} {i}" for i in range(200)],
        "label": ["xy"[i % 2] for i in range(200)],
    }
    model = firth.TextClassifier(tune="head", pooling="mean").fit(data, ONE, tiny_bert())
    assert model.training["automatic"]["learning_rate"] == 1e-2 and model.training["held_out_score"]["learned"] is True


# ---- defaults ----


def test_epochs_and_learning_rate_depend_on_rows_and_vector_length():
    method = firth.TextClassifier()
    assert [method.for_rows(rows, 384).epochs for rows in (50, 200, 1000, 5000)] == [20, 18, 4, 3]
    assert [method.for_rows(200, dim).learning_rate for dim in (768, 384, 32)] == pytest.approx([5e-5, 1e-4, 1e-3])
    explicit = firth.TextClassifier(epochs=2, learning_rate=3e-5)
    assert explicit.for_rows(200, 384) == explicit


def test_automatic_values_are_recorded_and_saved(base, tmp_path):
    method = firth.TextClassifier(batch_size=8, dropout=0.0, held_out=0.0)
    assert (method.epochs, method.learning_rate, method.max_length) == (None, None, None)
    model = method.fit(examples(), ONE, base)
    values = {"epochs": 20, "learning_rate": 1e-3, "max_length": 128}
    assert model.training["automatic"] == values and "chosen" not in model.training
    assert model.method == method.resolved(**values)
    model.save(tmp_path / "m")
    assert firth.load(tmp_path / "m").method == model.method
    explicit = firth.TextClassifier(**QUICK, max_length=64, held_out=0.0).fit(examples(), ONE, base)
    assert "automatic" not in explicit.training and explicit.max_length == 64
    questions = list(World(seed=21).questions(20))
    table = {name: [getattr(row, name) for row in questions] for name in ("question", "passage", "answer")}
    answerer = firth.QuestionAnswerer(**QUICK, held_out=0.0).fit(table, ONE, base)
    assert answerer.training["automatic"] == {"max_length": 128}  # the base has fewer than 384 positions


@pytest.mark.parametrize("name", ["answer", "classify", "regress", "sentence", "tags"])
def test_a_stored_zero_still_means_automatic(name):
    """Earlier versions saved 0 where None is the default now."""
    options = json.loads((GOLDEN / name / "config.json").read_text())["options"]
    old_name = "max_length" if "max_length" in options else "length"
    assert options[old_name] == 0
    method = firth.load(GOLDEN / name).method
    assert method.options()["max_length"] is None
    method = stored_method(
        name, {"epochs": 0, "learning_rate": 0.0, "max_length": 0} if name != "sentence" else {"max_length": 0}
    )
    assert method == type(method)()


def test_zero_epochs_are_refused():
    with refuses("invalid_value", method="TextClassifier", name="epochs", got=0):
        firth.TextClassifier(epochs=0)


@pytest.mark.parametrize(("how", "pool"), [(None, "cls"), ("mean", "mean"), ("cls", "cls"), ("max", "mean")])
def test_the_pooling_of_the_base_is_used_by_default(base, how, pool):
    """A base that was only pretrained uses [CLS]."""
    start = base if how is None else base.with_pooling(how=how, normalize=True)
    model = firth.TextClassifier(**QUICK).fit(examples(), ONE, start)
    assert model.net.pool == model.training["pool"] == pool
    assert firth.TextClassifier(**QUICK, pooling="mean").fit(examples(), ONE, start).net.pool == "mean"


def test_the_held_out_score_is_recorded_with_its_baselines(base):
    run = firth.Run(threads=1, report=Notes())
    score = firth.TextRegressor(**QUICK).fit(pair_examples(), run, base).training["held_out_score"]
    assert score["metric"] == "spearman" and list(score["baselines"]) == ["mean", "tf-idf + ridge regression"]
    tagged = [(text.split(), [word[0] for word in text.split()]) for text in World(seed=2).sentences(40)]
    score = firth.TokenClassifier(**QUICK).fit(firth.TaggedSentences(tagged), run, base).training["held_out_score"]
    assert score["baselines"]["majority tag"] < 0.5 < score["baselines"]["most frequent tag of each word"]
    rows = list(World(seed=21).questions(40))
    table = {name: [getattr(row, name) for row in rows] for name in ("question", "passage", "answer")}
    score = firth.QuestionAnswerer(**QUICK).fit(firth.Questions(table), run, base).training["held_out_score"]
    assert score["metric"] == "f1" and list(score["baselines"]) == [
        "first words of the passage",
        "sentence nearest to the question",
    ]
    assert "held_out_score" not in firth.TextClassifier(**QUICK, held_out=0.0).fit(examples(), run, base).training


# ---- trials ----


def test_the_trial_with_the_best_dev_score_wins(base):
    """A learning rate of nearly 0 loses, whether it is tried first or last."""
    data = {
        "text": [f"the {['king', 'queen'][i % 2]} {i}" for i in range(64)],
        "label": ["xy"[i % 2] for i in range(64)],
    }
    method = firth.TextClassifier(
        learning_rates="1e-9,1e-2", restarts=2, epochs=6, batch_size=16, dropout=0.0, held_out=0.25
    )
    model = method.fit(data, firth.Run(deterministic=True), base)
    history = model.training["held_out"]
    assert {(entry["try"], entry["rate"]) for entry in history} == {(1, 1e-9), (2, 1e-2), (3, 1e-9), (4, 1e-2)}
    best = max(entry["score"] for entry in history)
    assert model.training["accuracy"] == best > max(entry["score"] for entry in history if entry["rate"] == 1e-9)
    losses = [entry["held_out_loss"] for entry in history if entry["rate"] == 1e-9]
    assert losses[0] != losses[-1]  # a restart draws another head


@pytest.mark.parametrize("after", [3, 5, 7])  # within the first trial, at its end, within the second
def test_a_resumed_run_equals_an_uninterrupted_one(base, tmp_path, monkeypatch, after):
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    method = firth.TextClassifier(epochs=1, batch_size=8, learning_rates="1e-3,2e-3", dropout=0.1)
    uninterrupted = method.fit(examples(), firth.Run(deterministic=True), base)
    with pytest.raises(KeyboardInterrupt):
        run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(after))
        method.fit(examples(), run, base)
    run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(-1))
    resumed = method.fit(examples(), run, base)
    assert weights(resumed) == weights(uninterrupted)
    assert resumed.training["held_out"] == uninterrupted.training["held_out"]


def test_early_stopping(base):
    method = firth.TextClassifier(epochs=10, learning_rate=1e-9, patience=2, dropout=0.0, held_out=0.3)
    model = method.fit(examples(), ONE, base)
    assert model.training["steps"] == 3 * 1  # an epoch is one step: the first epoch, and two without a better score


def test_a_model_no_better_than_the_baseline_is_reported(base):
    def score_and_codes(texts, **more):
        notes, labels = Notes(), ["aab"[i % 3] for i in range(len(texts))]
        method = firth.TextClassifier(**{**QUICK, "held_out": 0.4, **more})
        data = firth.Examples({"text": texts, "label": labels})
        return method.fit(data, firth.Run(threads=1, report=notes), base).training["held_out_score"], notes.codes

    random = [f"{text} {number}" for number, text in enumerate(World(seed=2).sentences(150))]
    easy = [f"{['king', 'king', 'river'][i % 3]} {i}" for i in range(150)]
    score, codes = score_and_codes(random, learning_rate=1e-9)
    assert codes.count("nothing_learned") == 1 and score["learned"] is False
    score, codes = score_and_codes(easy, epochs=8, learning_rate=5e-3)
    assert "nothing_learned" not in codes and score["learned"] is True
    assert score["score"] == score["baselines"]["tf-idf + logistic regression"] == 1.0
    assert 0.5 < score["baselines"]["majority label"] < 0.8 and score["rows"] == 60


def test_gradient_accumulation_gives_the_same_model(base):
    one, many = (
        firth.TextClassifier(**QUICK, batch_tokens=tokens, held_out=0.0).fit(
            examples(), firth.Run(deterministic=True), base
        )
        for tokens in (100_000, 1)
    )
    assert one.training["steps"] == many.training["steps"] == 5
    np.testing.assert_allclose(logits(one, TEXTS), logits(many, TEXTS), atol=1e-4)


def test_balanced_class_weights_raise_the_probability_of_rare_labels(base):
    texts = [f"{text} {number}" for number, text in enumerate(World(seed=2).sentences(66))]
    data = {"text": texts, "label": ["often"] * 60 + ["rare"] * 6}
    options: dict[str, Any] = {"epochs": 2, "tune": "head", "learning_rate": 0.02, "held_out": 0.0, "dropout": 0.0}
    with warns_code("class_imbalance"):
        unweighted = firth.TextClassifier(**options).fit(data, ONE, base)
    balanced = firth.TextClassifier(**options, class_weights="balanced").fit(data, ONE, base)
    rare = [np.mean([dict(labels)["rare"] for labels in m.predict(texts, k=2)]) for m in (unweighted, balanced)]
    assert rare[0] < 0.25 < 0.4 < rare[1]


def test_several_trials_need_dev_data_and_no_budget(base):
    with refuses("conflicting_options", option="held_out", trials=2):
        firth.TextClassifier(restarts=2, held_out=0.0).fit(examples(), ONE, base)
    with refuses("conflicting_options", option="budget", trials=2):
        firth.TextClassifier(restarts=2).fit(examples(), firth.Run(budget=3), base)


# ---- invalid input ----


def test_a_single_label_or_number_is_refused(base):
    with refuses("no_variation", texts=3, label="yes"):
        firth.TextClassifier().fit({"text": ["a", "b", "c"], "label": ["yes"] * 3}, ONE, base)
    with refuses("no_variation", n_numbers=3, number=2):
        firth.TextRegressor().fit({"text": ["a", "b", "c"], "label": [2, 2, 2]}, ONE, base)
    with refuses("malformed_data", got="many") as caught:
        firth.TextRegressor().fit({"text": ["a", "b", "c"], "label": ["2", "many", "3"]}, ONE, base)
    assert "'label'" in str(caught.value) and "row 2" in str(caught.value)


def test_missing_and_repeated_columns_are_refused():
    with refuses("unknown_column", name="review", available="text, stars"):
        firth.Examples({"text": ["a"], "stars": [1]}, text="review", label="stars")
    with refuses("duplicate_name", got="stars, stars"):
        firth.Examples({"text": ["a"], "stars": [1]}, text="stars", label="stars")


def test_missing_labels_and_texts_are_counted(base):
    data = {"text": ["a b", "c", None, "d e", "f"], "label": ["x", "y", "x", None, "y"]}
    with warns_code() as issued:
        model = firth.TextClassifier(**QUICK, held_out=0.0).fit(data, ONE, base)
    notes = [str(warning) for warning in issued]
    assert any("1 of 5" in note and "label" in note and "row 4" in note for note in notes)
    assert any("1 of 5" in note and "text" in note and "row 3" in note for note in notes)
    assert model.training["texts"] == 3


def test_duplicates_and_contradictions_are_counted(base):
    data = {"text": ["a b", "a b", "a b", "c"], "label": ["x", "x", "y", "y"]}
    with warns_code() as issued:
        firth.TextClassifier(**QUICK, held_out=0.0).fit(data, ONE, base)
    notes = " ".join(map(str, issued))
    assert "1 of 4 rows" in notes and "more than one label" in notes


def test_labels_that_only_dev_data_has_count_as_wrong(base):
    dev = {"text": ["d", "e"], "label": ["z", "z"]}
    with warns_code("unknown_dev_labels") as issued:
        model = firth.TextClassifier(**QUICK).fit(examples(dev=dev), ONE, base)
    note = next(str(warning) for warning in issued if warning.code == "unknown_dev_labels")
    assert note.startswith("2 dev texts") and "'z'" in note
    assert model.training["accuracy"] == 0 and model.labels == ["a", "b"]


def test_long_texts_are_cut_and_counted_or_refused(base):
    data = {"text": ["king " * 300, "b", "c"], "label": ["x", "y", "x"]}
    with warns_code("texts_truncated") as issued:
        firth.TextClassifier(**QUICK, held_out=0.0).fit(data, ONE, base)
    assert "1 of 3 texts were truncated to 128 tokens" in str(issued[0])
    with refuses("text_too_long", name="Text 1", tokens=302, limit=128):
        firth.TextClassifier(overlong="refuse").fit(data, ONE, base)


def test_the_longer_text_of_a_pair_is_cut_first():
    assert truncate([[1] * 3, [2] * 9], 8) == [[1] * 3, [2] * 5]
    assert truncate([[1] * 9, [2] * 3], 8) == [[1] * 5, [2] * 3]
    assert truncate([[1] * 9, [2] * 9], 7) == [[1] * 4, [2] * 3]
    assert truncate([[1] * 2, [2] * 3], 7) == [[1] * 2, [2] * 3]


def test_inputs_of_the_wrong_type_are_refused(base):
    classifier = firth.TextClassifier(**QUICK).fit(examples(), ONE, base)
    with refuses("wrong_input", expected="single texts"):
        classifier.predict([("a", "b")])
    with refuses("wrong_input", expected="pairs of texts"):
        firth.TextRegressor(**QUICK).fit(pair_examples(), ONE, base).estimate(["a"])
    with refuses("invalid_type", got="a single str"):
        classifier.predict("a text")
    with refuses("invalid_value", option="k", got=0):
        classifier.predict(["a"], k=0)
