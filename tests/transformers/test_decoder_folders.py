"""Folders of decoders: generation, chat templates, vectors as in sentence-transformers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from click.testing import CliRunner
from formats.test_gguf_tokenizer import END, trained
from refusing import refuses
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

import firth
from firth.cli.main import cli
from firth.transformers.chat import render_chat
from firth.transformers.generation import TorchEngine
from firth.transformers.gpt_model import GPTModel

TEMPLATE = (
    "{%- for message in messages %}\n    {%- if message.role == 'system' and not loop.first %}\n"
    "        {{- raise_exception('system must be first') }}\n    {%- endif %}\n"
    "{{ '<' + message['role'] + '>' + message['content'] | trim }}\n{%- if loop.last %}{% break %}{% endif %}\n"
    "{%- endfor %}{% generation %}{% endgeneration %}{{ bos_token }}{{ messages | tojson }}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
MESSAGES = [{"role": "system", "content": " Be <brief>. "}, {"role": "user", "content": "the cat's 'mat' é"}]
SHAPE: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "max_position_embeddings": 90, "initializer_range": 0.1,
}  # fmt: skip


def write(folder: Path, name: str = "Qwen2", template: str | None = TEMPLATE, **settings: Any) -> Any:
    """A folder as transformers writes it, with weights in several files."""
    vocab, merges = trained()
    files: dict[str, Any] = {"vocab": vocab, "merges": merges}
    tokenizer = transformers.Qwen2Tokenizer(**files, bos_token=END)
    tokenizer.chat_template = template
    kind = "Gemma3TextConfig" if name == "Gemma3" else f"{name}Config"
    config = getattr(transformers, kind)(
        **{**SHAPE, **settings}, vocab_size=len(vocab), bos_token_id=vocab[END], eos_token_id=vocab[END]
    )
    torch.manual_seed(5)
    net = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    net.save_pretrained(folder, max_shard_size="100KB")
    tokenizer.save_pretrained(folder)
    return net


def opened(folder: Path) -> GPTModel:
    model = firth.load(folder)
    assert isinstance(model, GPTModel)
    return model


def test_greedy_text_is_that_of_transformers(tmp_path: Path) -> None:
    net = write(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    model, tokenizer = opened(tmp_path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    prompt = tokenizer("the cat sat", return_tensors="pt").input_ids
    expected = net.generate(prompt, max_new_tokens=30, do_sample=False, pad_token_id=0)[0, prompt.shape[1] :]
    text = tokenizer.decode(expected, skip_special_tokens=True)
    assert "".join(model.generate("the cat sat", 30, temperature=0)) == text
    model.save(tmp_path / "again")
    assert "".join(opened(tmp_path / "again").generate("the cat sat", 30, temperature=0)) == text


def test_generation_stops_at_every_end_token(tmp_path: Path) -> None:
    write(tmp_path)
    first = next(iter(opened(tmp_path).generate_tokens("the cat", tokens=1, temperature=0))).token.id
    for ends in (first, [1, first]):
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
        model = opened(tmp_path)
        assert "".join(model.generate("the cat", 20, temperature=0)) == ""
        model.save(tmp_path / "again", overwrite=True)
        assert "".join(opened(tmp_path / "again").generate("the cat", 20, temperature=0)) == ""


def test_precisions_and_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    model = opened(tmp_path)
    ids = model.ids("the cat sat on the mat")
    exact = model.engine("float32").start().logits(ids)
    with torch.inference_mode():
        np.testing.assert_allclose(TorchEngine(model.net, len(model.tokenizer)).start().logits(ids), exact, atol=1e-4)
    for precision, largest in (("int8", 0.05), ("int4", 0.5)):
        difference = np.abs(model.engine(precision).start().logits(ids) - exact).max() / np.abs(exact).max()
        assert 1e-5 < difference < largest
    with refuses("invalid_value", option="precision", got="int3"):
        model.generate("the", 3, precision="int3")
    assert model.engine_description.startswith("native")


# ---- chat ----


def test_prompts_are_those_of_transformers(tmp_path: Path) -> None:
    write(tmp_path, max_position_embeddings=200)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    model = opened(tmp_path)
    assert model.chat_prompt(MESSAGES) == expected and expected.endswith("<assistant>")
    model.save(tmp_path / "again")
    assert opened(tmp_path / "again").chat_prompt(MESSAGES) == expected
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert again.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True) == expected
    answer = "".join(model.chat(MESSAGES, 6, temperature=0))
    assert answer == "".join(model.generate(expected, 6, temperature=0))


def test_templates_cannot_reach_outside() -> None:
    for template in (
        "{{ messages.__class__.__mro__[1].__subclasses__() }}",
        "{% for i in range(10000000) %}x{% endfor %}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{{ raise_exception('no') }}",
        "{{ nothing.such }}",
        "{% if %}",
    ):
        with refuses("invalid_value"):
            render_chat(template, MESSAGES, {})


def test_what_chat_refuses(tmp_path: Path) -> None:
    write(tmp_path, template=None)
    with refuses("unsupported_model"):
        opened(tmp_path).chat(MESSAGES)
    for messages in ("text", [], [{"role": "user"}], [{"role": 1, "content": "x"}], ["x"]):
        with refuses("invalid_value", option="messages"):
            render_chat(TEMPLATE, messages, {})  # type: ignore[arg-type]
    with refuses("invalid_value", reason="system must be first"):
        render_chat(TEMPLATE, MESSAGES[::-1], {})
    with refuses("too_large"):
        (tmp_path / "chat_template.jinja").write_text("x" * 2_000_000)
        opened(tmp_path)


def test_named_templates(tmp_path: Path) -> None:
    write(tmp_path, template=None)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    named = [{"name": "rag", "template": "no"}, {"name": "default", "template": "yes"}]
    path.write_text(json.dumps({**config, "chat_template": named}))
    assert opened(tmp_path).chat_prompt(MESSAGES) == "yes"


def test_command_line(tmp_path: Path) -> None:
    write(tmp_path / "m", template="{{ messages | map(attribute='content') | join('|') }}")
    run = CliRunner().invoke
    options = ["--temperature", "0", "--max-new-tokens", "5", "--json"]
    chat = run(cli, ["generate", "text", str(tmp_path / "m"), "cat", "--chat", "--system", "the", *options])
    plain = run(cli, ["generate", "text", str(tmp_path / "m"), "the|cat", *options])
    assert chat.exit_code == plain.exit_code == 0, chat.output + plain.output
    assert json.loads(chat.stdout)["text"] == json.loads(plain.stdout)["text"] != ""
    info = json.loads(run(cli, ["info", str(tmp_path / "m"), "--json"]).stdout)
    assert info["engine"].startswith("native") and info["training"]["source"] == "qwen2"


# ---- vectors ----


@pytest.mark.parametrize("mode", ["mean", "lasttoken"])
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path, mode: str) -> None:
    write(tmp_path / "net", template=None, max_position_embeddings=60)
    modules = [
        Transformer(str(tmp_path / "net"), max_seq_length=60),
        Pooling(64, pooling_mode=mode),
        Normalize(),
    ]
    theirs = SentenceTransformer(modules=modules, device="cpu", prompts={"query": "the: "})
    theirs.save(str(tmp_path / "st"))
    texts = ["the cat sat on the mat", "12345 apples", "naïve"]
    model = opened(tmp_path / "st")
    with refuses("unsupported_model", problem="has no output layer"):  # sentence-transformers leaves it out
        model.generate("the", 3)
    model.save(tmp_path / "again")
    for each in (model, opened(tmp_path / "again")):
        np.testing.assert_allclose(each.embed(texts), theirs.encode(texts), atol=1e-5)
        expected = theirs.encode(texts, prompt_name="query")
        np.testing.assert_allclose(each.embed(texts, prompt="query"), expected, atol=1e-5)
    back = SentenceTransformer(str(tmp_path / "again"), device="cpu")
    np.testing.assert_allclose(back.encode(texts), theirs.encode(texts), atol=1e-5)


def test_texts_that_become_messages_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "net", max_position_embeddings=60)
    modules = [Transformer(str(tmp_path / "net")), Pooling(64, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "st"))
    with refuses("unsupported_architecture", folder=tmp_path / "st"):
        firth.load(tmp_path / "st")


def test_a_bidirectional_model_embeds_and_does_not_generate(tmp_path: Path) -> None:
    net = write(tmp_path, "Gemma3", use_bidirectional_attention=True, head_dim=16, sliding_window=8)
    model = opened(tmp_path)
    ids = torch.tensor([model.tokenizer.encode("the cat sat on the mat").ids])
    with torch.inference_mode():
        expected = net.model(ids).last_hidden_state[0].mean(0).numpy()
    np.testing.assert_allclose(model.embed(["the cat sat on the mat"])[0], expected, atol=1e-4)
    with refuses("unsupported_model"):
        model.generate("the", 3)
    assert model.engine_description.startswith("torch, because it attends to both sides")


# ---- damaged folders ----


def test_missing_shards_and_wrong_configs(tmp_path: Path) -> None:
    write(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())

    def refused(code: str, change: dict[str, Any], **values: Any) -> None:
        (tmp_path / "config.json").write_text(json.dumps(config | change))
        with refuses(code, **values):
            firth.load(tmp_path)

    refused("damaged_model", {"num_hidden_layers": 3}, layers=3)
    refused("damaged_model", {"num_key_value_heads": 4})
    refused("damaged_model", {"vocab_size": 9}, name="vocab_size")
    refused("damaged_model", {"layer_types": ["full_attention"]}, name="layer_types")
    refused("damaged_model", {"rms_norm_eps": "small"}, name="rms_norm_eps")
    refused("invalid_value", {"num_attention_heads": 4, "num_key_value_heads": 3}, option="heads")
    refused("unsupported_architecture", {"rope_parameters": {"rope_type": "yarn"}}, name="rope_type", got="yarn")
    refused("unsupported_architecture", {"hidden_act": "mish"}, name="hidden_act")
    refused("unsupported_architecture", {"model_type": "rwkv"}, kind="rwkv")
    (tmp_path / "config.json").write_text(json.dumps(config))
    min(tmp_path.glob("*.safetensors")).unlink()
    with pytest.raises(firth.FirthError):
        firth.load(tmp_path)
