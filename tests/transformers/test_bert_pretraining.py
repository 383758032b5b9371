"""Pre-training: the losses are Hugging Face's, packed or padded; runs go on exactly where they were; odd texts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from breaking import Breaks
from refusing import refuses, warns_code
from torch._dynamo.testing import CompileCounter
from torch.nn import functional

import firth
from firth.core.run import Run
from firth.data.sentences import read_sentences
from firth.data.subwords import WordPiece
from firth.data.world import World
from firth.nets.attention import Packed, attend_packed
from firth.nets.encoder import Encoder
from firth.transformers.bert_files import size_of
from firth.transformers.bert_pretraining import Pretraining, pretrain_bert, split
from firth.transformers.families.bert import BERT
from firth.transformers.families.encoders import encoder_config, write_encoder

DOCUMENTS = [document.text for document in World(seed=4).topics(40)]
TINY: dict[str, Any] = {
    "layers": 2,
    "dim": 16,
    "heads": 2,
    "context_length": 40,
    "batch_tokens": 400,
    "dropout": 0.0,
    "vocabulary_size": 200,
}
ALONE = Run(threads=1, deterministic=True, device="cpu")


def training(run: Run = ALONE, texts=DOCUMENTS, **options) -> Pretraining:
    method = firth.BERT(**TINY | {"epochs": 2, "learning_rate": 3e-3} | options)
    tokenizer = WordPiece(size=method.vocabulary_size).train(texts, Run(threads=1))
    torch.manual_seed(0)
    next_sentence = method.next_sentence
    net = Encoder(256, size_of(method), pooler=next_sentence, next_sentence=next_sentence)
    return Pretraining(method, net, read_sentences(tokenizer, texts, Run(threads=1)), tokenizer, run)


def weights(task: Pretraining) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in task.net.state_dict().values())


def padded(batch: list[torch.Tensor], length: int) -> dict[str, torch.Tensor]:
    """A packed batch as Hugging Face takes it."""
    ids, positions, segments, starts, slots, targets, _, _, labels, pair_weights = batch
    lengths = starts.diff().long()
    rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    batch_dict = {name: torch.zeros(len(lengths), length).long() for name in ("input_ids", "token_type_ids")}
    batch_dict["attention_mask"] = (torch.arange(length) < lengths[:, None]).long()
    batch_dict["input_ids"][rows, positions], batch_dict["token_type_ids"][rows, positions] = (
        ids.long(),
        segments.long(),
    )
    batch_dict["labels"] = torch.full((len(lengths), length), -100)
    batch_dict["labels"][rows[slots], positions[slots].long()] = targets
    batch_dict["next_sentence_label"] = labels.masked_fill(pair_weights == 0, -100)
    return batch_dict


def test_loss_and_gradients_are_hugging_faces():
    """Of the same weights on the same pairs: packed here, padded there."""
    task = training()
    batch = task.batches()[0]
    tensors = task.load(batch.what)
    config = transformers.BertConfig(**encoder_config(BERT, task.net))
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    theirs = transformers.BertForPreTraining(config)
    arrays = {name: torch.tensor(array) for name, array in write_encoder(BERT, task.net).items()}
    theirs.load_state_dict(arrays, strict=False)
    theirs.tie_weights()
    expected = theirs(**padded(tensors, task.context_length)).loss
    loss = task.batch_loss(*tensors) / batch.tokens
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
    loss.backward(), expected.backward()
    known = dict(theirs.named_parameters())
    wide = task.net.stack.blocks[0].get_submodule("feed.wide")
    assert task.net.next_sentence is not None and task.net.masked is not None
    pairs = [
        (task.net.input.tokens.weight, known["bert.embeddings.word_embeddings.weight"]),
        (wide.weight, known["bert.encoder.layer.0.intermediate.dense.weight"]),
        (task.net.next_sentence.weight, known["cls.seq_relationship.weight"]),
        (task.net.masked.bias, known["cls.predictions.bias"]),
    ]
    for ours, other in pairs:
        torch.testing.assert_close(ours.grad, other.grad, atol=1e-5, rtol=1e-4)


def test_the_batch_is_what_the_text_says():
    task = training()
    for batch in task.batches()[:3]:
        tensors = task.load(batch.what)
        ids, positions, segments, starts, slots, targets, _, firsts, labels, _ = tensors
        assert len(ids) == batch.tokens == starts[-1] and torch.equal(firsts, starts[:-1].long())
        assert (ids[firsts] == task.template.before[0]).all() and (
            ids[starts[1:].long() - 1] == task.template.after[0]
        ).all()
        unmasked = ids.clone().long()
        unmasked[slots] = targets
        pairs = batch.what.pairs
        tokens = sorted(pairs.tokens(task.template))
        assert starts.diff().tolist() == tokens and positions.max() < task.longest
        for begin, end, label in zip(starts[:-1].tolist(), starts[1:].tolist(), labels.tolist(), strict=True):
            row, segment_ids = unmasked[begin:end].tolist(), segments[begin:end].tolist()
            middle = segment_ids.index(1)
            assert row.count(task.template.after[0]) == 2 and row[middle - 1] == task.template.after[0]
            assert segment_ids == [0] * middle + [1] * (len(segment_ids) - middle)
            if label == 0:  # A and B stand in the text one behind the other
                text = row[1 : middle - 1] + row[middle:-1]
                document = task.sentences.ids.tolist()
                assert any(document[at : at + len(text)] == text for at in range(len(document)))


def test_batches_of_one_shape_have_the_same_loss_and_one_compilation(monkeypatch):
    task = training(context_length=256, short_first=0.5, batch_tokens=1024)
    natural = list(task.batches())
    task.static, task.plans = True, ((-1, 0), ())
    fixed = list(task.batches())
    assert len(fixed) == len(natural)
    for one, two in zip(natural, fixed, strict=True):
        tensors = task.load(two.what)
        assert one.tokens == two.tokens and [len(tensor) for tensor in tensors[:3]] == [1024] * 3
        assert tensors[3][-1] == 1024 and int(tensors[3].diff().max()) <= task.longest
        with torch.no_grad():
            expected = task.batch_loss(*task.load(one.what))
            torch.testing.assert_close(task.batch_loss(*tensors), expected, rtol=1e-5, atol=1e-2)
    # The CPU's attention asks for lengths, which a GPU's does not: something of its form stands in.
    monkeypatch.setattr("firth.nets.attention.attend_packed", lambda q, k, v, packed, *_: q + v * packed.longest)
    counter = CompileCounter()
    compiled = torch.compile(task.batch_loss, dynamic=False, fullgraph=True, backend=counter)
    for phase in (0, 1):
        task.progress.phase = phase
        for epoch in (0, 1):
            task.progress.epoch = epoch
            for batch in task.batches():
                compiled(*task.load(batch.what))
        assert counter.frame_count == phase + 1
    torch.compiler.reset()


def test_sequences_without_tokens_are_passed_over():
    query = torch.randn(7, 2, 4)
    starts = torch.tensor([0, 3, 3, 7, 7, 7], dtype=torch.int32)
    expected = attend_packed(query, query, query, Packed.of((3, 4)))
    torch.testing.assert_close(attend_packed(query, query, query, Packed(starts, 4)), expected)


# ---- runs ----


def test_it_learns_and_measures():
    task = training(epochs=10, next_sentence=True)
    metrics = task.go()
    first, last = metrics["held_out"][0], metrics["held_out"][-1]
    assert last["held_out_loss"] < first["held_out_loss"] - 0.3 and last["masked_accuracy"] > first["masked_accuracy"]
    assert last["perplexity"] == pytest.approx(np.exp(last["held_out_loss"]))
    assert 0 <= last["next_accuracy"] <= 1 and {"masked_accuracy", "next_accuracy"} <= metrics["epochs"][0].keys()
    assert metrics["tokens_per_second"] == pytest.approx(
        sum(epoch["pairs"] for epoch in metrics["epochs"]) / metrics["seconds"]
    )
    assert task.evaluate(10**9) == task.evaluate(10**9)  # the same masks each time
    alone = training(epochs=1, next_sentence=False)
    assert "next_accuracy" not in alone.go() and alone.net.pooler is None


@pytest.mark.parametrize("phase", [0, 1])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, monkeypatch, phase):
    """In the first phase of short sequences and in the second."""
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    monkeypatch.setattr("firth.transformers.bert_pretraining.SHORT", 20)
    settings: dict[str, Any] = {"dropout": 0.1, "short_first": 0.6, "epochs": 3}
    uninterrupted = training(**settings)
    uninterrupted.go()
    assert uninterrupted.progress.phase == 1
    after = uninterrupted.progress.steps - 4 if phase else 2
    interrupted = training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(after)), **settings)
    with pytest.raises(KeyboardInterrupt):
        interrupted.go()
    assert interrupted.progress.phase == phase
    resumed = training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(-1)), **settings)
    metrics = resumed.go()
    assert weights(resumed) == weights(uninterrupted) and metrics["steps"] == uninterrupted.progress.steps


def test_a_run_goes_on_at_the_same_share_with_batches_of_another_size(tmp_path: Path, monkeypatch):
    """As with fewer processes, which take larger ones."""
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    monkeypatch.setattr("firth.transformers.bert_pretraining.MOST_TOKENS", 100)
    broken = training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(6)), epochs=1)
    with pytest.raises(KeyboardInterrupt):
        broken.go()
    done, size = broken.progress.position, broken.size
    assert 0.3 < done / size < 0.7
    monkeypatch.setattr("firth.transformers.bert_pretraining.MOST_TOKENS", 200)
    resumed = training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(-1)), epochs=1)
    assert resumed.go()["epochs"][0]["pairs"] == pytest.approx(size, rel=0.05)


def test_short_sequences_come_first(monkeypatch):
    monkeypatch.setattr("firth.transformers.bert_pretraining.SHORT", 20)
    task = training(epochs=1, short_first=0.5)
    seen: list[int] = []
    load = task.load

    def loaded(what: Any) -> Any:
        seen.append(what.longest)
        return load(what)

    monkeypatch.setattr(task, "load", loaded)
    task.go()
    trained = [longest for longest in seen if longest in (20, 40)]
    assert trained[0] == 20 and 40 in trained
    assert training(short_first=0.0).lengths == (40,) and training(context_length=16, short_first=0.5).lengths == (16,)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import torch.distributed as dist
from firth.transformers import bert_pretraining as pretrain
pretrain.MOST_TOKENS = 200
from test_bert_pretraining import answers, np, training
task = training(epochs=1, held_out=0.0)
task.go()
if task.rank == 0:
    np.save({out!r}, answers(task))
dist.barrier()  # neither process closes its connections while the other one is still at work
dist.destroy_process_group()
"""


def answers(task: Pretraining) -> np.ndarray:
    """What the net says to a batch. (Weights that make no difference, as the keys' biases, may differ.)"""
    with torch.no_grad():
        tensors = task.load(task.batches()[0].what)
        hidden, firsts = task.hidden(tensors, task.longest)
        masked, next_sentence = task.net.masked_logits(hidden), task.next_logits(firsts)
    assert next_sentence is not None
    return np.concatenate([masked.numpy().ravel(), next_sentence.numpy().ravel()])


def test_two_processes_equal_one_with_the_same_step(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("firth.transformers.bert_pretraining.MOST_TOKENS", 200)
    alone = training(epochs=1, held_out=0.0)
    alone.go()
    program, out = tmp_path / "two.py", tmp_path / "answers.npy"
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parent), out=str(out)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(out), answers(alone), atol=5e-3)


def test_the_last_block_is_worked_out_for_no_more_rows_than_the_losses_look_at():
    task = training(dropout=0.0)
    ids, positions, segments, starts, slots, targets, slot_weights, firsts, labels, pair_weights = tensors = task.load(
        task.batches()[0].what
    )
    assert 0 < len(slots) + len(firsts) < len(ids)
    all_rows = task.net(ids, positions, segments, Packed(starts, task.longest))
    torch.testing.assert_close(torch.cat(task.hidden(tensors, task.longest)), all_rows[torch.cat([slots, firsts])])
    assert task.net.pooler is not None and task.net.next_sentence is not None
    pooled = torch.tanh(task.net.pooler(all_rows[firsts]))
    masked = functional.cross_entropy(task.net.masked_logits(all_rows[slots]), targets, reduction="none")
    next_sentence = functional.cross_entropy(task.net.next_sentence(pooled), labels, reduction="none")
    expected = torch.autograd.grad(
        (masked * slot_weights).sum() + (next_sentence * pair_weights).sum(), list(task.net.parameters())
    )
    gradients = torch.autograd.grad(task.batch_loss(*tensors), list(task.net.parameters()))
    for ours, plain in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-3, rtol=1e-3)


# ---- models ----


def test_rows_that_stand_for_no_token_are_not_predicted_and_not_kept(tmp_path: Path):
    model = firth.BERT(**TINY, epochs=2).fit(DOCUMENTS, ALONE)
    assert model.net.masked is not None and model.net.pooler is not None and model.net.next_sentence is not None
    assert model.net.input.tokens.num_embeddings == len(model.tokenizer) == 200 == len(model.net.masked.bias)
    assert (model.net.masked.bias > -100).all()
    model.save(tmp_path / "bert")
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path / "bert").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")
    inputs = tokenizer("the [MASK] of the river", "the boat", return_tensors="pt")
    with torch.no_grad():
        outputs = theirs(**inputs)
        ids, segments = inputs["input_ids"][0].tolist(), inputs["token_type_ids"][0].tolist()
        hidden = model.net(*model.tensors([ids], [segments]))
        torch.testing.assert_close(model.net.masked_logits(hidden), outputs.prediction_logits[0], atol=1e-4, rtol=1e-4)
        pooled = torch.tanh(model.net.pooler(hidden[:1]))
        torch.testing.assert_close(
            model.net.next_sentence(pooled), outputs.seq_relationship_logits, atol=1e-4, rtol=1e-4
        )


def test_going_on_from_a_model_and_from_one_without_heads(tmp_path: Path):
    method = firth.BERT(**TINY, epochs=3, learning_rate=3e-3)
    model = method.fit(DOCUMENTS, ALONE)
    again = method.fit(DOCUMENTS, ALONE, start=model)
    assert again.tokenizer is model.tokenizer
    assert again.training["held_out"][0]["held_out_loss"] < model.training["held_out"][0]["held_out_loss"] - 0.2
    bare = Encoder(200, model.size, pooler=False, masked=False, next_sentence=False)
    bare.load_state_dict({k: v for k, v in model.net.state_dict().items() if k.split(".")[0] in ("input", "stack")})
    encoder = firth.transformers.bert_model.BertModel(model.method, bare, model.tokenizer, model.pooling, {})
    assert method.fit(DOCUMENTS, ALONE, start=encoder).net.next_sentence is not None
    expected, got = "layers=2, context_length=40", "layers=1, context_length=50"
    with refuses("incompatible_start", expected=expected, got=got):
        firth.BERT(**TINY | {"layers": 1, "context_length": 50}).fit(DOCUMENTS, ALONE, start=model)
    small = firth.BERT(**TINY, epochs=1)
    pooled = model.with_pooling(how="cls", layers=(-2,), normalize=True)
    assert small.fit(DOCUMENTS, ALONE, start=pooled).pooling == pooled.pooling
    whitened = model.whitened([text[:60] for text in DOCUMENTS], dim=4)
    with warns_code("projection_dropped"):
        assert small.fit(DOCUMENTS, ALONE, start=whitened).projection is None
    wide = firth.BERT(**TINY | {"feedforward_dim": 4 * model.size.dim}, epochs=1)  # what 0 stands for
    assert wide.fit(DOCUMENTS, ALONE, start=model).training["epochs"]


def test_pairs_need_two_segments():
    net = Encoder(200, replace(size_of(firth.BERT(**TINY)), segments=1))
    tokenizer = WordPiece(size=150).train(DOCUMENTS, Run(threads=1))
    model = firth.transformers.bert_model.BertModel(
        firth.BERT(**TINY), net, tokenizer, firth.transformers.pooling.Pooling(), {}
    )
    assert model.states("the river").shape[0] == TINY["layers"] + 1
    with refuses("unsupported_model", segments=1):
        model.states("the river", "a boat")
    with refuses("incompatible_start", segments=1):
        firth.BERT(**TINY, epochs=1).fit(DOCUMENTS, ALONE, start=model)
    again = firth.BERT(**TINY, epochs=1, next_sentence=False).fit(DOCUMENTS, ALONE, start=model)
    assert again.net.input.segments is not None
    assert again.net.input.segments.num_embeddings == 1 and again.training["held_out_loss"] > 0


def test_tokens_that_are_given(tmp_path: Path):
    WordPiece(size=150).train(DOCUMENTS, Run(threads=1)).save(tmp_path / "tokens")
    for path in (tmp_path / "tokens", tmp_path / "tokens" / "vocab.txt"):
        model = firth.BERT(**TINY, epochs=1, tokenizer=str(path)).fit(DOCUMENTS, ALONE)
        assert len(model.tokenizer) == 150
    WordPiece(size=150, special_tokens=("[UNK]",)).train(DOCUMENTS, Run(threads=1)).save(tmp_path / "lacking.json")
    lacking = str(tmp_path / "lacking.json")
    with refuses("invalid_tokenizer", missing="pad", special="pad, unk, cls, sep, mask", tokenizer=lacking):
        firth.BERT(**TINY, tokenizer=lacking).fit(DOCUMENTS, ALONE)


# ---- odd texts ----


def test_one_document_is_trained_on_without_next_sentences():
    with warns_code("next_sentence_disabled"):
        model = firth.BERT(**TINY, epochs=1).fit([" . ".join(DOCUMENTS[:20])], ALONE)
    assert model.net.next_sentence is None and "next_accuracy" not in model.training
    assert model.training["held_out_loss"] > 0  # its last sentences


def test_a_large_last_document_is_not_held_out_whole():
    first, second = " . ".join(DOCUMENTS[:2]), " . ".join(DOCUMENTS[2:])
    task = training()
    for texts in ([first, second], [second, first], [second, second]):
        trained, held_out = split(read_sentences(task.tokenizer, texts, Run(threads=1)), 0.05)
        share = (held_out.starts[-1] - held_out.starts[0]) / held_out.starts[-1]
        assert 0.02 < share < 0.1 and len(trained.documents) == (2 if texts[1] == first else 3)
    with warns_code("next_sentence_disabled"):
        model = firth.BERT(**TINY, epochs=1, held_out=0.3).fit([second, second], ALONE)
    assert model.net.next_sentence is None  # B would follow A in all pairs


def test_of_one_held_out_document_next_sentences_are_not_judged():
    some = [" . ".join(DOCUMENTS[n : n + 5]) for n in (0, 5, 10, 15)]
    model = firth.BERT(**TINY, epochs=1, held_out=0.01).fit(some, ALONE)
    assert model.net.next_sentence is not None and "masked_accuracy" in model.training
    assert "next_accuracy" not in model.training


def test_text_of_unknown_pieces_only(tmp_path: Path):
    WordPiece(size=60).train(DOCUMENTS, Run(threads=1)).save(tmp_path / "tokens")
    with refuses("empty_data", token="[UNK]"):
        firth.BERT(**TINY, tokenizer=str(tmp_path / "tokens")).fit(["日本語 日本", "本日 語"] * 10, ALONE)


def test_long_words_control_characters_and_empty_rows():
    odd = ["", "x" * 1_000_000 + " the river", "\x00\x07", "\ufeff", "the \x00 boat\x7f of [MASK] [SEP]", " \n \n", "a"]
    model = firth.BERT(**TINY, epochs=1).fit([*DOCUMENTS, *odd], ALONE)
    assert model.training["documents"] == len(DOCUMENTS) + 3 and np.isfinite(model.training["loss"])


def test_texts_of_a_token_or_two():
    model = firth.BERT(**TINY | {"vocabulary_size": 7}, epochs=1).fit(["a b", "b", "a", "b a", "a a b"] * 30, ALONE)
    assert np.isfinite(model.training["loss"]) and model.training["documents"] == 150


def test_nothing_is_held_out_where_nothing_can_be():
    task = training(held_out=0.0)
    assert task.evaluate(100) == {}
    text = read_sentences(task.tokenizer, ["only one sentence here"], Run(threads=1))
    trained, held_out = split(text, 0.5)
    assert len(trained.starts) == 2 and len(held_out.starts) == 1
    text = read_sentences(task.tokenizer, DOCUMENTS[:10], Run(threads=1))
    trained, held_out = split(text, 0.05)  # at least a document
    assert len(held_out.documents) == 2 and held_out.starts[0] == trained.starts[-1]


def test_options_are_checked_together():
    with refuses("invalid_value", option="BERT.dim", got=10, heads=3):
        firth.BERT(dim=10, heads=3).fit(DOCUMENTS, ALONE)
    assert firth.BERT(size="base").shape == (12, 768, 12) and firth.BERT(size="tiny", dim=64).shape == (2, 64, 2)
    words = firth.SkipGram(min_count=1, epochs=1).fit(DOCUMENTS, ALONE)
    with refuses("incompatible_start", got=words):
        pretrain_bert(firth.BERT(**TINY), DOCUMENTS, ALONE, words)


def test_the_passes_of_a_step_have_one_shape_on_a_gpu():
    """A step divided into passes has the same pairs as an undivided one; all passes are padded to one shape."""
    tasks = [training(run, batch_tokens=900) for run in (ALONE, replace(ALONE, accumulation=3))]
    for task in tasks:
        task.static = True
    whole, divided = (task.plan(0) for task in tasks)
    assert len(divided) > 2 * len(whole) and {batch.what.shape for batch in divided} == {tasks[1].plan(1)[0].what.shape}
    shapes = set()
    for batch in whole:
        passes = [part for part in divided if part.step == batch.step]
        assert sum(part.tokens for part in passes) == batch.tokens and len(passes) <= 3
        begins = np.concatenate([part.what.pairs.begin for part in passes])
        np.testing.assert_array_equal(begins, batch.what.pairs.begin)
        loaded = [tasks[1].load(part.what) for part in passes]
        shapes |= {tuple(tensor.shape for tensor in tensors) for tensors in loaded}
        slots = [int((tensors[6] > 0).sum()) for tensors in (*loaded, tasks[0].load(batch.what))]
        assert sum(slots[:-1]) == slots[-1]
        weighted = tasks[1].normalized(loaded, batch.tokens)
        assert sum(float(tensors[6].sum()) for tensors in weighted) == pytest.approx(batch.tokens, rel=1e-4)
    assert len(shapes) == 1
