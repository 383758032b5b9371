"""Packed batches: their ids and segments equal to what the tokenizer gives for the same texts and pairs."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from firth import SubwordTokenizer
from firth.transformers.masking import Masking
from firth.transformers.next_sentence_pairs import ALONE, FOLLOWS, Pairs
from firth.transformers.packing import pack

WORDS = [f"w{number}" for number in range(40)]
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
TEMPLATES = {
    "bert": processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B:1 </s>:1", [("<s>", 2), ("</s>", 3)]),
    "roberta": processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 2), ("</s>", 3)]),
    "t5": processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 3)]),
    "unequal": processors.TemplateProcessing("$A </s>", "<s> <s> $A <s> $B:1", [("<s>", 2), ("</s>", 3)]),
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_pack_follows_the_template_of_the_tokenizer(template: str) -> None:
    engine = Tokenizer(models.WordLevel({token: id for id, token in enumerate(SPECIAL + WORDS)}, unk_token="<unk>"))
    engine.pre_tokenizer, engine.post_processor = pre_tokenizers.WhitespaceSplit(), TEMPLATES[template]
    engine.add_special_tokens(SPECIAL)
    tokenizer = SubwordTokenizer(engine)
    text = np.array(tokenizer.encode(" ".join(WORDS), special=False).ids, np.int32)
    begin = np.array([[0, 3], [5, 0], [10, 30], [7, 8]])
    length = np.array([[3, 2], [4, 0], [1, 5], [1, 1]])
    pairs = Pairs(begin, length, np.array([FOLLOWS, ALONE, FOLLOWS, FOLLOWS]))
    masking = Masking.of(tokenizer, rate=0.0, share=0.8, whole_words=False)
    batch = pack(text, pairs, tokenizer.template, pad=0, masking=masking, seed=1)
    expected = {}
    for (first, second), (first_length, second_length) in zip(begin, length, strict=True):
        texts = [" ".join(WORDS[at : at + n]) for at, n in ((first, first_length), (second, second_length)) if n]
        read = engine.encode(texts[0], texts[1] if len(texts) > 1 else None)
        expected[tuple(read.ids)] = read.type_ids
    got = {
        tuple(batch.ids[begin:end].tolist()): batch.segments[begin:end].tolist()
        for begin, end in zip(batch.starts, batch.starts[1:], strict=False)
    }
    if template == "unequal":  # only the second text is compared: tokens between the texts keep segment 0
        assert got.keys() == expected.keys()
    else:
        assert got == expected
    lengths = [len(engine.encode("w1", "w1" if n > 1 else None).ids) for n in (2, 1, 2, 2)]
    expected_lengths = [length + extra for length, extra in zip(lengths, (3, 3, 4, 0), strict=True)]
    assert pairs.tokens(tokenizer.template).tolist() == expected_lengths
