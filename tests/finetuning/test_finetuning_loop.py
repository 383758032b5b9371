"""Fine-tuning: the same logits as transformers' heads, tries and resume, what learns and what stays, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from breaking import Breaks, Notes
from tiny import tiny_bert, tiny_gpt

import firth
from firth.core.report import Silence
from firth.data.world import World
from firth.finetuning.finetuning_loop import fitted

TEXTS = ["the king sleeps", "a river", "the queen of the forest sees the old king", "zzyzx"]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]
ONE = firth.Run(threads=1)
QUICK = {"epochs": 1, "batch_size": 8, "dropout": 0.0, "learning_rate": 1e-3}


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
    asked = TEXTS if kind == "texts" else PAIRS
    model = method.fit(examples() if kind == "texts" else pair_examples(), ONE, base)
    model.save(tmp_path / "ours")
    net, tokenizer, found = theirs(tmp_path / "ours", asked, "BertForSequenceClassification")
    np.testing.assert_allclose(logits(model, asked), found, atol=1e-5)
    if kind == "texts":
        assert net.config.id2label == {0: "a", 1: "b"}
    else:
        assert net.config.problem_type == "regression" and net.config.num_labels == 1
        np.testing.assert_allclose(model.estimate(asked), found[:, 0], atol=1e-5)
    net.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    back = firth.load(tmp_path / "theirs")
    assert type(back) is type(model)
    np.testing.assert_allclose(logits(back, asked), found, atol=1e-5)
    assert not back.training.get("command")


def test_a_gpts_last_token_tells(tmp_path):
    model = firth.TextClassifier(**QUICK).fit(examples(), ONE, tiny_gpt())
    model.save(tmp_path / "ours")
    import transformers

    net = transformers.GPT2ForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    end = model.tokenizer.special_id("<|endoftext|>")
    ids = [[end, *model.tokenizer.encode(text).ids, end] for text in TEXTS]
    with torch.no_grad():
        found = np.concatenate([net(torch.tensor([row])).logits.numpy() for row in ids])
    np.testing.assert_allclose(logits(model, TEXTS), found, atol=1e-4)
    np.testing.assert_array_equal(logits(firth.load(tmp_path / "ours"), TEXTS), logits(model, TEXTS))
    net.save_pretrained(tmp_path / "theirs")
    model.tokenizer.save(tmp_path / "theirs" / "tokenizer.json")
    np.testing.assert_allclose(logits(firth.load(tmp_path / "theirs"), TEXTS), found, atol=1e-4)
    # A folder may have scores and norms of another kind; saved again, it computes the same.
    config = net.config.to_dict() | {"layer_norm_epsilon": 0.01, "scale_attn_by_inverse_layer_idx": True}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    net = transformers.GPT2ForSequenceClassification.from_pretrained(tmp_path / "theirs").eval()
    with torch.no_grad():
        found = np.concatenate([net(torch.tensor([row])).logits.numpy() for row in ids])
    firth.load(tmp_path / "theirs").save(tmp_path / "again")
    for folder in ("theirs", "again"):
        np.testing.assert_allclose(logits(firth.load(tmp_path / folder), TEXTS), found, atol=1e-4)


def test_texts_read_together_are_read_as_alone(base):
    model = firth.TextClassifier(**QUICK, pooling="mean").fit(examples(), ONE, base)
    together = logits(model, TEXTS)
    np.testing.assert_allclose(together, np.concatenate([logits(model, [text]) for text in TEXTS]), atol=1e-5)


# ---- what learns ----


@pytest.mark.parametrize(("tune", "moved"), [("head", set()), ("1", {1}), ("all", {0, 1})])
def test_only_what_is_tuned_moves(base, tune, moved):
    model = firth.TextClassifier(**QUICK, tune=tune).fit(examples(), ONE, base)
    old, new = base.net.stack.blocks, model.net.base.stack.blocks
    for number, (a, b) in enumerate(zip(old, new, strict=True)):
        same = all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
        assert same == (number not in moved)
    same = torch.equal(base.net.input.tokens.weight, model.net.base.input.tokens.weight)
    assert same == (tune != "all")


def test_tune_beyond_the_base_is_refused(base):
    with pytest.raises(firth.FirthError, match=r"TextClassifier.tune must be at most 2, the base's layers; got '3'."):
        firth.TextClassifier(tune="3").fit(examples(), ONE, base)
    with pytest.raises(firth.FirthError, match=r"TextClassifier.learning_rates must be numbers .* got '1e-3;2'."):
        firth.TextClassifier(learning_rates="1e-3;2")
    with pytest.raises(firth.FirthError, match="length must be at most 128"):
        firth.TextClassifier(max_length=500).fit(examples(), ONE, base)


def test_a_frozen_base_reads_each_text_once(base, monkeypatch):
    """However many epochs and tries there are; the head is the same as if it read them every time."""
    from firth.finetuning import finetuning_loop as tuning
    from firth.nets.bert import Bert

    read, forward = [], Bert.forward

    def counted(net, ids, *rest):
        read.append(len(ids))
        return forward(net, ids, *rest)

    monkeypatch.setattr(Bert, "forward", counted)
    known = examples(40)
    for pool in ("cls", "mean"):
        method = firth.TextClassifier(
            **{**QUICK, "epochs": 4}, tune="head", pooling=pool, learning_rates="1e-3,1e-2", max_length=32
        )
        read.clear()
        once = method.fit(known, firth.Run(deterministic=True), base)
        tokens = sum(len(each) + 2 for each in base.tokenizer.ids_batch(known.texts(), special=False))
        assert sum(read) == tokens
        with monkeypatch.context() as patch:
            patch.setattr(tuning, "MOST_ENCODED", 0)
            with pytest.warns(firth.FirthWarning, match="encoded in every epoch"):
                again = method.fit(known, firth.Run(deterministic=True), base)
        assert sum(read) > 8 * tokens
        np.testing.assert_allclose(logits(once, TEXTS), logits(again, TEXTS), atol=1e-4)
        assert once.training["steps"] == again.training["steps"]


def test_a_frozen_base_reads_each_tagged_word_and_passage_once(base, monkeypatch):
    from firth.nets.bert import Bert

    read, forward = [], Bert.forward

    def counted(net, ids, *rest):
        read.append(len(ids))
        return forward(net, ids, *rest)

    monkeypatch.setattr(Bert, "forward", counted)
    tagged = [(text.split(), [word[0] for word in text.split()]) for text in World(seed=2).sentences(40)]
    firth.TokenClassifier(**{**QUICK, "epochs": 5}, tune="head").fit(firth.TaggedSentences(tagged), ONE, base)
    tokens = sum(len(base.tokenizer.encode(" ".join(words)).ids) for words, _ in tagged)  # [CLS] and [SEP] among them
    assert sum(read) == tokens


def test_a_frozen_base_learns_by_default():
    """The rate of a whole network is far too low for one layer."""
    known = {
        "text": [f"the {['king', 'queen'][i % 2]} {i}" for i in range(200)],
        "label": ["xy"[i % 2] for i in range(200)],
    }
    model = firth.TextClassifier(tune="head", pooling="mean").fit(known, ONE, tiny_bert())
    assert model.training["chosen"]["learning_rate"] == 1e-2 and model.training["held_out_score"]["learned"] is True


# ---- defaults ----


def test_epochs_and_rate_are_chosen_by_rows_and_width():
    method = firth.TextClassifier()
    assert [method.for_rows(rows, 384).epochs for rows in (50, 200, 1000, 5000)] == [20, 18, 4, 3]
    assert [method.for_rows(200, dim).learning_rate for dim in (768, 384, 32)] == pytest.approx([5e-5, 1e-4, 1e-3])
    given = firth.TextClassifier(epochs=2, learning_rate=3e-5)
    assert given.for_rows(200, 384) == given


@pytest.mark.parametrize(("how", "pool"), [(None, "cls"), ("mean", "mean"), ("cls", "cls"), ("max", "mean")])
def test_a_text_is_pooled_as_the_base_does(base, how, pool):
    """A base that was only pre-trained gives [CLS]."""
    start = base if how is None else base.with_pooling(how=how, normalize=True)
    model = firth.TextClassifier(**QUICK).fit(examples(), ONE, start)
    assert model.net.pool == model.training["pool"] == pool
    assert firth.TextClassifier(**QUICK, pooling="mean").fit(examples(), ONE, start).net.pool == "mean"


def test_the_held_out_score_stands_beside_baselines(base):
    told = firth.Run(threads=1, report=Notes())
    found = firth.TextRegressor(**QUICK).fit(pair_examples(), told, base).training["held_out_score"]
    assert found["metric"] == "spearman" and list(found["baselines"]) == ["mean", "tf-idf + ridge regression"]
    tagged = [(text.split(), [word[0] for word in text.split()]) for text in World(seed=2).sentences(40)]
    found = firth.TokenClassifier(**QUICK).fit(firth.TaggedSentences(tagged), told, base).training["held_out_score"]
    assert found["baselines"]["majority tag"] < 0.5 < found["baselines"]["most frequent tag of each word"]
    rows = list(World(seed=21).questions(40))
    asked = {name: [getattr(row, name) for row in rows] for name in ("question", "passage", "answer")}
    found = firth.QuestionAnswerer(**QUICK).fit(firth.Questions(asked), told, base).training["held_out_score"]
    assert found["metric"] == "f1" and list(found["baselines"]) == [
        "first words of the passage",
        "sentence nearest to the question",
    ]
    assert "held_out_score" not in firth.TextClassifier(**QUICK, held_out=0.0).fit(examples(), told, base).training


# ---- tries ----


def test_the_best_of_several_tries_is_kept(base):
    """A rate at which nothing is learned loses against one at which something is, whichever comes first."""
    known = {
        "text": [f"the {['king', 'queen'][i % 2]} {i}" for i in range(64)],
        "label": ["xy"[i % 2] for i in range(64)],
    }
    method = firth.TextClassifier(
        learning_rates="1e-9,1e-2", restarts=2, epochs=6, batch_size=16, dropout=0.0, held_out=0.25
    )
    model = method.fit(known, firth.Run(deterministic=True), base)
    measured = model.training["held_out"]
    assert {(found["try"], found["rate"]) for found in measured} == {(1, 1e-9), (2, 1e-2), (3, 1e-9), (4, 1e-2)}
    best = max(found["score"] for found in measured)
    assert model.training["accuracy"] == best > max(found["score"] for found in measured if found["rate"] == 1e-9)
    losses = [found["held_out_loss"] for found in measured if found["rate"] == 1e-9]
    assert losses[0] != losses[-1]  # another new layer


@pytest.mark.parametrize("after", [3, 5, 7])  # within the first try, at its end, within the second
def test_a_resumed_run_equals_an_unbroken_one(base, tmp_path, monkeypatch, after):
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    method = firth.TextClassifier(epochs=1, batch_size=8, learning_rates="1e-3,2e-3", dropout=0.1)
    whole = method.fit(examples(), firth.Run(deterministic=True), base)
    with pytest.raises(KeyboardInterrupt):
        run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(after))
        method.fit(examples(), run, base)
    run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(-1))
    resumed = method.fit(examples(), run, base)
    assert weights(resumed) == weights(whole)
    assert resumed.training["held_out"] == whole.training["held_out"]


def test_it_stops_when_nothing_gets_better(base):
    method = firth.TextClassifier(epochs=10, learning_rate=1e-9, patience=2, dropout=0.0, held_out=0.3)
    model = method.fit(examples(), ONE, base)
    assert model.training["steps"] == 3 * 1  # an epoch is a step: one to compare with, two without a better score


def test_what_learned_nothing_says_so(base):
    def fitted(texts, **more):
        told, labels = Notes(), ["aab"[i % 3] for i in range(len(texts))]
        method = firth.TextClassifier(**{**QUICK, "held_out": 0.4, **more})
        known = firth.Examples({"text": texts, "label": labels})
        return method.fit(known, firth.Run(threads=1, report=told), base).training["held_out_score"], told.codes

    random = [f"{text} {number}" for number, text in enumerate(World(seed=2).sentences(150))]
    easy = [f"{['king', 'king', 'river'][i % 3]} {i}" for i in range(150)]
    score, codes = fitted(random, learning_rate=1e-9)
    assert codes.count("nothing_learned") == 1 and score["learned"] is False
    score, codes = fitted(easy, epochs=8, learning_rate=5e-3)
    assert "nothing_learned" not in codes and score["learned"] is True
    assert score["score"] == score["baselines"]["tf-idf + logistic regression"] == 1.0
    assert 0.5 < score["baselines"]["majority label"] < 0.8 and score["rows"] == 60


def test_small_parts_of_a_step_add_up_to_it(base):
    one, many = (
        firth.TextClassifier(**QUICK, batch_tokens=tokens, held_out=0.0).fit(
            examples(), firth.Run(deterministic=True), base
        )
        for tokens in (100_000, 1)
    )
    assert one.training["steps"] == many.training["steps"] == 5
    np.testing.assert_allclose(logits(one, TEXTS), logits(many, TEXTS), atol=1e-4)


def test_rare_labels_weigh_more_when_balanced(base):
    texts = [f"{text} {number}" for number, text in enumerate(World(seed=2).sentences(66))]
    known = {"text": texts, "label": ["often"] * 60 + ["rare"] * 6}
    plain = {"epochs": 2, "tune": "head", "learning_rate": 0.02, "held_out": 0.0, "dropout": 0.0}
    with pytest.warns(firth.FirthWarning, match=r"'often' occurs 60 times, 'rare' 6 times. class_weights=balanced"):
        usual = firth.TextClassifier(**plain).fit(known, ONE, base)
    fair = firth.TextClassifier(**plain, class_weights="balanced").fit(known, ONE, base)
    chance = [np.mean([dict(found)["rare"] for found in m.predict(texts, k=2)]) for m in (usual, fair)]
    assert chance[0] < 0.25 < 0.4 < chance[1]


def test_several_tries_need_something_to_choose_by(base):
    with pytest.raises(firth.FirthError, match="need dev data"):
        firth.TextClassifier(restarts=2, held_out=0.0).fit(examples(), ONE, base)
    with pytest.raises(firth.FirthError, match="budget is for one try"):
        firth.TextClassifier(restarts=2).fit(examples(), firth.Run(budget=3), base)


# ---- bad input ----


def test_one_label_is_nothing_to_learn(base):
    with pytest.raises(firth.FirthError, match="All 3 texts have the label 'yes'"):
        firth.TextClassifier().fit({"text": ["a", "b", "c"], "label": ["yes"] * 3}, ONE, base)
    with pytest.raises(firth.FirthError, match="All 3 texts have the number 2"):
        firth.TextRegressor().fit({"text": ["a", "b", "c"], "label": [2, 2, 2]}, ONE, base)
    with pytest.raises(firth.FirthError, match=r"Column 'label', row 2 must be a number; got 'many'."):
        firth.TextRegressor().fit({"text": ["a", "b", "c"], "label": ["2", "many", "3"]}, ONE, base)


def test_columns_that_are_not_there_are_named():
    with pytest.raises(firth.FirthError, match=r"no column 'review'; it has text, stars"):
        firth.Examples({"text": ["a"], "stars": [1]}, text="review", label="stars")
    with pytest.raises(firth.FirthError, match="must name different columns; got stars, stars"):
        firth.Examples({"text": ["a"], "stars": [1]}, text="stars", label="stars")


def test_missing_labels_and_texts_are_counted(base):
    known = {"text": ["a b", "c", None, "d e", "f"], "label": ["x", "y", "x", None, "y"]}
    with pytest.warns(firth.FirthWarning) as told:
        model = firth.TextClassifier(**QUICK, held_out=0.0).fit(known, ONE, base)
    notes = [str(note.message) for note in told]
    assert "1 of 5 rows have no label and are left out; the first is row 4." in notes
    assert "1 of 5 rows have no text and are left out; the first is row 3." in notes
    assert model.training["texts"] == 3


def test_duplicates_and_contradictions_are_counted(base):
    known = {"text": ["a b", "a b", "a b", "c"], "label": ["x", "x", "y", "y"]}
    with pytest.warns(firth.FirthWarning) as told:
        firth.TextClassifier(**QUICK, held_out=0.0).fit(known, ONE, base)
    notes = {note.message.code: str(note.message) for note in told if isinstance(note.message, firth.FirthWarning)}
    assert notes["duplicate_rows"].startswith("1 of 4 ") and notes["conflicting_labels"].startswith("1 texts ")


def test_labels_only_of_dev_count_as_wrong(base):
    dev = {"text": ["d", "e"], "label": ["z", "z"]}
    with pytest.warns(firth.FirthWarning, match=r"2 dev texts have labels that the examples don't \('z'\)"):
        model = firth.TextClassifier(**QUICK).fit(examples(dev=dev), ONE, base)
    assert model.training["accuracy"] == 0 and model.labels == ["a", "b"]


def test_long_texts_are_cut_and_counted_or_refused(base):
    known = {"text": ["king " * 300, "b", "c"], "label": ["x", "y", "x"]}
    with pytest.warns(firth.FirthWarning, match="1 of 3 texts have more than 128 tokens"):
        firth.TextClassifier(**QUICK, held_out=0.0).fit(known, ONE, base)
    with pytest.raises(firth.FirthError, match="1 of 3 texts have more than 128 tokens; overlong=cut"):
        firth.TextClassifier(overlong="refuse").fit(known, ONE, base)


def test_of_a_pair_the_longer_is_cut_first():
    assert fitted([[1] * 3, [2] * 9], 8) == [[1] * 3, [2] * 5]
    assert fitted([[1] * 9, [2] * 3], 8) == [[1] * 5, [2] * 3]
    assert fitted([[1] * 9, [2] * 9], 7) == [[1] * 4, [2] * 3]
    assert fitted([[1] * 2, [2] * 3], 7) == [[1] * 2, [2] * 3]


def test_pairs_and_texts_are_not_taken_for_each_other(base):
    texts = firth.TextClassifier(**QUICK).fit(examples(), ONE, base)
    with pytest.raises(firth.FirthError, match="single texts"):
        texts.predict([("a", "b")])
    with pytest.raises(firth.FirthError, match="pairs of texts"):
        firth.TextRegressor(**QUICK).fit(pair_examples(), ONE, base).estimate(["a"])
    with pytest.raises(firth.FirthError, match="not one text"):
        texts.predict("a text")
    with pytest.raises(firth.FirthError, match="k must be"):
        texts.predict(["a"], k=0)
