"""The encoder of a T5 embeds texts (Sentence-T5): by Firth's own engine, or by torch where heads are wider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from encoder_decoders import VOCABULARY, save_tokenizer

import firth
from firth.transformers.bert_model import BertModel
from firth.transformers.text_encoder import needs_torch

TEXTS = ["w3 w4 w5", "w50", "w7 w8 " * 40, "w9 w10 w11 w12 w13"]


def saved(folder: Path, **settings: Any) -> Any:
    common = {"d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 2, "d_ff": 48, "vocab_size": VOCABULARY}
    torch.manual_seed(0)
    net = transformers.T5EncoderModel(transformers.T5Config(**{**common, **settings})).eval()
    net.save_pretrained(folder)
    save_tokenizer(folder)
    return net


@pytest.mark.parametrize("settings", [{}, {"feed_forward_proj": "gated-gelu"}, {"d_kv": 12}], ids=str)
def test_vectors_are_the_mean_of_transformers(settings, tmp_path):
    net = saved(tmp_path / "theirs", **settings)
    model = firth.load(tmp_path / "theirs", firth.BERT)
    assert isinstance(model, BertModel)
    assert needs_torch(model.size) == ("heads of another width" if "d_kv" in settings else "")
    model = model.with_pooling(how="mean", normalize=False)
    rows = model.embed(TEXTS)
    for text, row in zip(TEXTS, rows, strict=True):
        with torch.inference_mode():
            states = net(torch.tensor([model.tokenizer.encode(text).ids])).last_hidden_state[0]
        np.testing.assert_allclose(row, states.mean(0).numpy(), atol=1e-5)
    model.save(tmp_path / "ours")
    np.testing.assert_array_equal(firth.load(tmp_path / "ours", firth.BERT).embed(TEXTS), rows)
    again = transformers.T5EncoderModel.from_pretrained(tmp_path / "ours").eval()
    with torch.inference_mode():
        ids = torch.tensor([[5, 6, 7, 1]])
        torch.testing.assert_close(again(ids).last_hidden_state, net(ids).last_hidden_state, atol=1e-6, rtol=0)
