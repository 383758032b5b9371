"""Low-rank adapters: peft opens what Firth trained on the same base, and Firth what peft wrote, with equal outputs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import tiny
import torch
import transformers
from breaking import Breaks
from click.testing import CliRunner
from encoder_folders import FAMILIES, tokenizer_of, write_folder
from refusing import refuses
from safetensors.numpy import load_file, save_file
from tuned import PAIRS, TEXTS, fine_tuned, ours, theirs

import firth
from firth.cli.main import cli
from firth.core.errors import FirthWarning
from firth.core.report import Report, Silence
from firth.data.world import World
from firth.finetuning.finetuning_loop import encode_texts
from firth.nets.attention import Packed
from firth.nets.lora import ADAPTERS, AdaptedLinear, add_adapters
from firth.transformers.families.family import SEQUENCE, SPAN, TOKEN

LORA = {"lora": 4, "lora_alpha": 12.0}
BOTH: list[list[Any]] = [TEXTS, PAIRS]


def in_peft(base: Path, adapter: Path, kind: str, **settings: Any) -> Any:
    """A base as transformers opens it, with an adapter as peft opens it."""
    net = getattr(transformers, f"AutoModel{kind}").from_pretrained(base, **settings)
    return peft.PeftModel.from_pretrained(net, adapter).eval()


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> None:
    largest = max(float(each.abs().max()) for each in second)
    assert largest > 0.01
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5 * max(1.0, largest), rtol=1e-5)


@pytest.mark.parametrize(
    ("family", "kind"),
    [*((family, SEQUENCE) for family in FAMILIES), ("bert", TOKEN), ("modernbert", SPAN), ("nomic_bert", TOKEN)],
)
def test_peft_opens_what_firth_trained(family, kind, tmp_path):
    write_folder(tmp_path / "base", family)
    model = fine_tuned(kind, firth.load(tmp_path / "base"), **LORA)
    assert 0 < model.training["trained_parameters"] < 0.5 * model.training["parameters"]
    model.save(tmp_path / "adapter")
    assert not (tmp_path / "adapter/model.safetensors").exists()
    labels = {} if kind == SPAN else {"num_labels": len(model.task["labels"])}
    net = in_peft(tmp_path / "base", tmp_path / "adapter", kind, **labels)
    tokenizer = tokenizer_of(family)
    again = firth.load(tmp_path / "adapter")
    model.merged().save(tmp_path / "merged")
    complete = firth.load(tmp_path / "merged")
    start = firth.load(tmp_path / "base")
    for inputs in BOTH if kind == SEQUENCE else BOTH[:1]:
        logits = ours(model, inputs)
        same(logits, theirs(net, tokenizer, inputs))
        same(ours(again, inputs), logits)
        same(ours(complete, inputs), logits)
    # the adapter changed the base
    assert not np.allclose(again.embed(TEXTS), start.embed(TEXTS), atol=1e-3)  # type: ignore[attr-defined]
    np.testing.assert_allclose(complete.embed(TEXTS), again.embed(TEXTS), atol=1e-6)  # type: ignore[attr-defined]


SUFFIXES = {  # layers that peft adapts by default, or a part of them
    "bert": ["query", "value"],
    "roberta": ["query", "value", "output.dense"],
    "xlm-roberta": ["query", "value"],
    "camembert": ["key", "intermediate.dense"],
    "electra": ["query", "value"],
    "distilbert": ["q_lin", "v_lin", "lin1"],
    "mpnet": ["attn.q", "attn.v", "attn.o"],
    "modernbert": ["Wqkv", "Wi"],
    "nomic_bert": ["q_proj", "v_proj", "up_proj", "down_proj"],
    "deberta-v2": ["query_proj", "key_proj"],
    "albert": ["query", "value"],
}


def peft_adapter(net: Any, folder: Path, task: str | None, targets: list[str], base: Path, **settings: Any) -> Any:
    """Write an adapter with random weights as peft does."""
    config = peft.LoraConfig(
        task_type=task, target_modules=targets, r=4, lora_alpha=6, init_lora_weights=False, **settings
    )
    torch.manual_seed(3)
    adapted = peft.get_peft_model(net, config).eval()
    adapted.peft_config["default"].base_model_name_or_path = str(base)
    adapted.save_pretrained(str(folder))
    return adapted


@pytest.mark.parametrize("family", FAMILIES)
def test_firth_opens_what_peft_wrote(family, tmp_path):
    write_folder(tmp_path / "base", family)
    net = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    more = {"modules_to_save": ["pooler"]} if family in ("bert", "nomic_bert") else {}
    more |= {"modules_to_save": ["head"]} if family == "modernbert" else {}
    more |= {"modules_to_save": ["pre_classifier"]} if family == "distilbert" else {}
    more |= {"modules_to_save": ["pooler"]} if family in ("albert", "deberta-v2") else {}
    adapted = peft_adapter(net, tmp_path / "adapter", "SEQ_CLS", SUFFIXES[family], tmp_path / "base", **more)
    model = firth.load(tmp_path / "adapter", firth.TextClassifier)
    for inputs in BOTH:
        same(ours(model, inputs), theirs(adapted, tokenizer_of(family), inputs))
    model.save(tmp_path / "again")
    same(ours(firth.load(tmp_path / "again"), TEXTS), ours(model, TEXTS))


def test_one_output_is_a_regressor_and_rslora_has_another_scale(tmp_path):
    write_folder(tmp_path / "base", "mpnet")
    net = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=1)
    adapted = peft_adapter(net, tmp_path / "adapter", "SEQ_CLS", ["attn.q"], tmp_path / "base", use_rslora=True)
    numbers = firth.load(tmp_path / "adapter", firth.TextRegressor).estimate(TEXTS)
    expected = torch.cat(theirs(adapted, tokenizer_of("mpnet"), TEXTS))
    torch.testing.assert_close(torch.from_numpy(numbers), expected, atol=2e-5, rtol=0)


def gpt_folder(folder: Path) -> None:
    tiny.tiny_gpt().save(folder)


def test_a_gpt_takes_adapters_with_a_head_and_without(tmp_path):
    gpt_folder(tmp_path / "base")
    examples = World(seed=5).sentiment(60)
    data = [{"text": text, "label": label} for text, label in {each.text: each.label for each in examples}.items()]
    method = firth.TextClassifier(epochs=2, learning_rate=5e-3, dropout=0.0, **LORA)  # type: ignore[arg-type]
    model = method.fit(data, firth.Run(seed=3), firth.load(tmp_path / "base"))
    model.save(tmp_path / "adapter")
    net = in_peft(tmp_path / "base", tmp_path / "adapter", SEQUENCE, num_labels=2)
    net.config.pad_token_id = None
    encoded = encode_texts(model.tokenizer, TEXTS, 120, "refuse", Silence())
    with torch.inference_mode():
        texts = encoded.tensors(range(len(TEXTS)), False)[0].split(encoded.lengths.tolist())
        expected = [net(text[None]).logits[0] for text in texts]
    same(ours(model, TEXTS), expected)
    same(ours(firth.load(tmp_path / "adapter"), TEXTS), expected)
    language = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    adapted = peft_adapter(language, tmp_path / "language", "CAUSAL_LM", ["c_attn"], tmp_path / "base")
    opened = firth.load(tmp_path / "language", firth.GPT)
    prompt = texts[0]
    with torch.inference_mode():
        logits = adapted(prompt[None]).logits[0]
        same([opened.net.logits(opened.net(prompt[None]))[0][:, : logits.shape[1]]], [logits])


def test_a_sentence_encoder_takes_adapters(tmp_path):
    write_folder(tmp_path / "base", "mpnet")
    method = firth.SentenceEncoder(epochs=2, learning_rate=1e-2, dropout=0.0, pooling="mean", **LORA)  # type: ignore[arg-type]
    texts = tiny.texts()[:40]
    pairs = [{"text": first, "positive": second} for first, second in zip(texts[::2], texts[1::2], strict=True)]
    model = method.fit(firth.SimilarPairs(pairs, other="positive"), firth.Run(seed=3), firth.load(tmp_path / "base"))
    model.save(tmp_path / "adapter")
    again = firth.load(tmp_path / "adapter", firth.SentenceEncoder)
    np.testing.assert_array_equal(again.embed(TEXTS), model.embed(TEXTS))
    net = in_peft(tmp_path / "base", tmp_path / "adapter", "")
    tokenizer = tokenizer_of("mpnet")
    rows = []
    with torch.inference_mode():
        for text in TEXTS:
            read = tokenizer(text, return_tensors="pt")
            read.pop("token_type_ids", None)
            rows.append(net(**read).last_hidden_state[0].mean(0).numpy())
    np.testing.assert_allclose(again.embed(TEXTS), np.array(rows), atol=1e-5)
    assert not np.allclose(firth.load(tmp_path / "base", firth.BERT).embed(TEXTS), again.embed(TEXTS), atol=1e-3)


def test_gradients_are_those_of_peft(tmp_path):
    """The gradients of a step, of every matrix of every adapter."""
    write_folder(tmp_path / "base", "roberta")
    net = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    targets = ["self.query", "self.key", "self.value", "attention.output.dense", "intermediate.dense", "output.dense"]
    adapted = peft_adapter(net, tmp_path / "adapter", "SEQ_CLS", targets, tmp_path / "base")
    model = firth.load(tmp_path / "adapter", firth.TextClassifier)
    assert model.adapter is not None
    # the base without the merged adapter, with the same adapter unmerged
    other = firth.load(tmp_path / "base", firth.BERT)
    unmerged = dict(other.net.stack.named_parameters())
    model.net.base.stack.load_state_dict({name: part.detach() for name, part in unmerged.items()})
    add_adapters(model.net.base, rows_of_adapter(model), model.adapter.rank, model.adapter.scale)
    for name, part in model.net.base.named_modules():
        if isinstance(part, AdaptedLinear):
            part.requires_grad_adapter()
            for end in ADAPTERS:
                getattr(part, end).data.copy_(model.adapter.arrays[f"{name}.{end}"])
    targets_of = torch.tensor([row % 3 for row in range(len(TEXTS))])
    encoded = encode_texts(model.tokenizer, TEXTS, 120, "refuse", Silence())
    ids, segments, starts = encoded.tensors(range(len(TEXTS)), False)
    logits = model.net(ids, segments, Packed(starts, int(encoded.lengths.max())))
    torch.nn.functional.cross_entropy(logits, targets_of, reduction="sum").backward()
    read = tokenizer_of("roberta")(TEXTS, return_tensors="pt", padding=True)
    read.pop("token_type_ids", None)
    for name, part in adapted.named_parameters():
        part.requires_grad_(".lora_" in name)
    torch.nn.functional.cross_entropy(adapted(**read).logits, targets_of, reduction="sum").backward()
    expected = {name: part.grad for name, part in adapted.named_parameters() if part.grad is not None}
    found = 0
    for layer in range(2):
        block = model.net.base.get_submodule(f"stack.blocks.{layer}")
        stem = f"base_model.model.roberta.encoder.layer.{layer}"
        for ours_name, names in {
            "attention.query_key_value": ["attention.self.query", "attention.self.key", "attention.self.value"],
            "attention.output": ["attention.output.dense"],
            "feed.wide": ["intermediate.dense"],
            "feed.back": ["output.dense"],
        }.items():
            part = block.get_submodule(ours_name)
            assert isinstance(part, AdaptedLinear) and part.down.grad is not None and part.up.grad is not None
            assert part.weight.grad is None  # frozen
            for theirs_name, down, up in zip(
                names, torch.split(part.down.grad, 4), torch.split(part.up.grad, part.rows), strict=True
            ):
                for end, gradient in (("lora_A", down), ("lora_B", up)):
                    torch.testing.assert_close(
                        gradient, expected[f"{stem}.{theirs_name}.{end}.default.weight"], atol=1e-4, rtol=1e-4
                    )
                    found += 1
    assert found == len(expected) == 24


def rows_of_adapter(model: Any) -> dict[str, list[int]]:
    from firth.transformers.adapters import rows_of, sources_of

    return rows_of(model.net.base, sources_of(model.net.base, model.base.size), model.base.size)


# ---- training ----


def base_and_data(folder: Path) -> tuple[Any, list[dict[str, str]]]:
    tiny.tiny_bert(lively=True).save(folder)
    examples = World(seed=5).sentiment(400)
    data = {each.text: each.label for each in examples}
    return firth.load(folder), [{"text": text, "label": label} for text, label in data.items()]


def test_adapters_learn_what_a_frozen_base_cannot(tmp_path):
    start, data = base_and_data(tmp_path / "base")
    run = firth.Run(seed=3)
    scores = {}
    for name, options in {"frozen": {"tune": "head"}, "lora": {"lora": 8}}.items():
        with warnings.catch_warnings():  # of the frozen base: tf-idf is better
            warnings.simplefilter("ignore", FirthWarning)
            model = firth.TextClassifier(epochs=6, dropout=0.0, **options).fit(data, run, start)  # type: ignore[arg-type]
        scores[name] = model.training["accuracy"]
    assert scores["lora"] >= scores["frozen"] + 0.08, scores


def test_the_base_is_frozen_and_results_are_deterministic(tmp_path):
    start, data = base_and_data(tmp_path / "base")
    before = {name: tensor.clone() for name, tensor in start.net.state_dict().items()}
    method = firth.TextClassifier(epochs=2, **LORA)  # type: ignore[arg-type]
    models = [method.fit(data[:60], firth.Run(seed=3, deterministic=True, threads=n), start) for n in (1, 2)]
    for name, tensor in start.net.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
    for number, model in enumerate(models):
        model.save(tmp_path / str(number))
    files = [load_file(tmp_path / f"{number}/adapter_model.safetensors") for number in range(2)]
    assert files[0].keys() == files[1].keys()
    assert all(np.array_equal(files[0][name], files[1][name]) for name in files[0])
    inner = [name for name in models[0].base.net.state_dict() if name.startswith("input.")]
    assert inner and all(torch.equal(models[0].base.net.state_dict()[name], before[name]) for name in inner)


@pytest.mark.parametrize("after", [3, 6])
def test_a_resumed_run_equals_an_uninterrupted_one(after, tmp_path, monkeypatch):
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    start, data = base_and_data(tmp_path / "base")
    method = firth.TextClassifier(epochs=1, batch_size=8, learning_rates="1e-3,2e-3", held_out=0.2, **LORA)  # type: ignore[arg-type]

    def fit(report: Report, folder: Path | None = None) -> Any:
        return method.fit(data[:60], firth.Run(deterministic=True, checkpoint_folder=folder, report=report), start)

    uninterrupted = fit(Breaks(-1))
    with pytest.raises(KeyboardInterrupt):
        fit(Breaks(after), tmp_path / "run")
    resumed = fit(Breaks(-1), tmp_path / "run")
    for each, name in ((resumed, "resumed"), (uninterrupted, "uninterrupted")):
        each.save(tmp_path / name)
    files = [load_file(tmp_path / name / "adapter_model.safetensors") for name in ("resumed", "uninterrupted")]
    assert all(np.array_equal(files[0][name], array) for name, array in files[1].items())


def test_the_command_line_trains_describes_and_merges_adapters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.tiny_bert().save("base")
    rows = [f"{text.replace(',', ' ')},{'xy'[n % 2]}" for n, text in enumerate(tiny.texts()[:60])]
    Path("data.csv").write_text("\n".join(["text,label", *rows]))

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(cli, list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    out = call("finetune", "text-classifier", "base", "data.csv", "--lora", "4", "--epochs", "1", "-o", "adapter")
    trained = json.loads(Path("adapter/training.json").read_text())
    assert f"{trained['trained_parameters']:,} of {trained['parameters']:,} parameters" in out
    fields = json.loads(call("info", "adapter", "--json"))["adapter"]
    assert fields["base"] == str(tmp_path / "base") and fields["rank"] == 4 and fields["scale"] == 4.0
    # 2 layers with 4 matrices of 32 × 32 (queries, keys, values, output) and 2 of 32 × 128
    assert fields["parameters"] == 2 * 4 * (4 * 64 + 2 * 160) == trained["trained_parameters"] - (33 * 32 + 2 * 33)
    call("convert", "adapter", "complete")
    assert call("predict", "adapter", "data.csv", "--json") == call("predict", "complete", "data.csv", "--json")
    assert json.loads(call("info", "complete", "--json"))["adapter"] is None
    call("verify", "adapter")


# ---- refusals ----


@pytest.fixture
def adapter(tmp_path):
    """The folder of an adapter beside that of its base."""
    write_folder(tmp_path / "base", "bert")
    fine_tuned(SEQUENCE, firth.load(tmp_path / "base"), **LORA).save(tmp_path / "adapter")
    return tmp_path / "adapter"


def test_a_base_that_moved_is_found_beside_the_adapter(adapter, tmp_path):
    expected = firth.load(adapter, firth.TextClassifier).predict(TEXTS)
    (tmp_path / "elsewhere").mkdir()
    for name in ("base", "adapter"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    assert firth.load(tmp_path / "elsewhere/adapter", firth.TextClassifier).predict(TEXTS) == expected
    (tmp_path / "elsewhere/base").rename(tmp_path / "elsewhere/other")
    with refuses("incomplete_model", expected="base"):
        firth.load(tmp_path / "elsewhere/adapter")


def test_another_base_is_refused(adapter, tmp_path):
    write_folder(tmp_path / "more", "bert")
    file = tmp_path / "base/model.safetensors"
    arrays = load_file(file)
    name = "bert.encoder.layer.1.output.dense.weight"
    save_file({**arrays, name: arrays[name] * 1.5}, file, {"format": "pt"})
    with refuses("hash_mismatch", base=str(tmp_path / "base")):
        firth.load(adapter)


def test_start_must_be_stored_and_complete(adapter, tmp_path):
    with refuses("incompatible_start", problem="and this one is in memory only"):
        fine_tuned(SEQUENCE, tiny.tiny_bert(), **LORA)
    with refuses("incompatible_start", problem="and this one is itself an adapter"):
        fine_tuned(SEQUENCE, firth.load(adapter), **LORA)
    start = firth.load(adapter)
    fine_tuned(SEQUENCE, start)  # without new adapters, its merged weights are trained on
    with refuses("conflicting_options", tune="head"):
        firth.TextClassifier(lora=4, tune="head")


@pytest.mark.parametrize(
    ("change", "code", "values"),
    [
        ({"peft_type": "IA3"}, "unsupported_architecture", {"name": "peft_type", "got": "IA3"}),
        ({"use_dora": True}, "unsupported_architecture", {"name": "use_dora"}),
        ({"rank_pattern": {"query": 2}}, "unsupported_architecture", {"name": "rank_pattern"}),
        ({"r": 5}, "damaged_model", {"expected": (5, 32)}),
        ({"r": 0}, "damaged_model", {"name": "r"}),
        ({"task_type": "SEQ_2_SEQ_LM"}, "unsupported_architecture", {"got": "SEQ_2_SEQ_LM"}),
        ({"base_model_name_or_path": "bert-base-uncased"}, "incomplete_model", {"expected": "bert-base-uncased"}),
    ],
)
def test_other_adapters_are_refused(change, code, values, tmp_path):
    write_folder(tmp_path / "base", "bert")
    net = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    peft_adapter(net, tmp_path / "adapter", "SEQ_CLS", ["query"], tmp_path / "base", modules_to_save=["pooler"])
    file = tmp_path / "adapter/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with refuses(code, **values):
        firth.load(tmp_path / "adapter")


@pytest.mark.parametrize(
    ("damage", "code", "values"),
    [
        (lambda arrays: arrays.pop(next(name for name in arrays if "lora_B" in name)), "incomplete_model", {}),
        (
            lambda arrays: arrays.update({"base_model.model.bert.other.lora_A.weight": np.zeros((4, 32), np.float32)}),
            "unsupported_architecture",
            {},
        ),
        (
            lambda arrays: arrays.update({"base_model.model.classifier.weight": np.full((3, 32), np.nan, np.float32)}),
            "damaged_model",
            {"name": "base_model.model.classifier.weight"},
        ),
        (lambda arrays: arrays.pop("base_model.model.classifier.weight"), "incomplete_model", {"name": "classifier"}),
    ],
)
def test_damaged_adapters_are_refused(damage, code, values, tmp_path):
    write_folder(tmp_path / "base", "bert")
    net = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    peft_adapter(net, tmp_path / "adapter", "SEQ_CLS", ["query"], tmp_path / "base", modules_to_save=["pooler"])
    file = tmp_path / "adapter/adapter_model.safetensors"
    arrays = load_file(file)
    damage(arrays)
    save_file(arrays, file)
    with refuses(code, **values):
        firth.load(tmp_path / "adapter")
