"""Fine-tuning reads texts, pairs, words and passages as the tokenizer's template says: RoBERTa's beside BERT's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from firth import QuestionAnswerer, SubwordTokenizer, WordPiece
from firth.core.report import Silence
from firth.data.questions import Question
from firth.finetuning.finetuning_loop import encode_texts
from firth.finetuning.question_answering import windows
from firth.finetuning.token_classification import parts_of

CORPUS = ["the king sleeps in the old forest by the river", "a queen sees the king, isn't it? the river ends here"] * 10


@pytest.fixture(scope="module", params=["roberta", "bert"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SubwordTokenizer:
    if request.param == "bert":
        return WordPiece(size=60).train(CORPUS)
    folder: Path = tmp_path_factory.mktemp("roberta")
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    engine.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    )
    engine.model.save(str(folder))
    return SubwordTokenizer.load(folder)


def test_texts_and_pairs(tokenizer: SubwordTokenizer) -> None:
    pairs = [(first, f"{first[:20]} and {number}") for number, first in enumerate(CORPUS[:6])]
    for inputs in (CORPUS[:6], pairs):
        encoded = encode_texts(tokenizer, inputs, 64, "refuse", Silence())
        ids, segments, starts = (tensor.numpy() for tensor in encoded.tensors(range(len(inputs)), segments=True))
        expected = tokenizer.engine.encode_batch(inputs)
        assert ids.tolist() == [id for each in expected for id in each.ids]
        assert segments.tolist() == [type for each in expected for type in each.type_ids]
        assert np.diff(starts).tolist() == [len(each.ids) for each in expected]


def test_truncated_pairs_keep_the_template(tokenizer: SubwordTokenizer) -> None:
    template, limit = tokenizer.template, 12
    with pytest.warns(UserWarning):
        encoded = encode_texts(tokenizer, [(CORPUS[0], CORPUS[1])], limit, "truncate", Silence())
    assert len(encoded.ids) == limit
    first = int(encoded.seconds[0]) - len(template.pair_before) - len(template.between)
    parts = tokenizer.ids_batch([CORPUS[0], CORPUS[1]], special=False)
    second = limit - template.added_to_pair - first
    assert encoded.ids.tolist() == template.pair(parts[0][:first], parts[1][:second])[0]


def test_words_of_sentences(tokenizer: SubwordTokenizer) -> None:
    words = CORPUS[0].split()
    parts = parts_of(tokenizer, [words], 64)
    text = " " + CORPUS[0] if tokenizer.space else CORPUS[0]
    assert parts.texts.ids.tolist() == tokenizer.encode(text).ids  # as in running text
    firsts = np.flatnonzero(parts.words >= 0)
    assert parts.words[firsts].tolist() == list(range(len(words)))
    for position, word in zip(firsts, words, strict=True):
        token = tokenizer.tokens[int(parts.texts.ids[position])].lstrip("Ġ")
        assert word.startswith(token)


def test_windows_of_a_passage(tokenizer: SubwordTokenizer) -> None:
    passage, question = " ".join(CORPUS[:3]), "who sleeps"
    begin = passage.index("forest")
    method = QuestionAnswerer(overlap=4)
    found, _ = windows(
        tokenizer, [Question("1", question, passage, ("forest",), (begin,))], [(begin, begin + 6)], method, 32
    )
    template, n_question = tokenizer.template, len(tokenizer.encode(question, special=False).ids)
    second = len(template.pair_before) + n_question + len(template.between)
    whole = tokenizer.encode(passage, special=False).ids
    assert set(found.texts.seconds) == {second} and len(found.texts) > 1
    for row, first in enumerate(found.firsts):
        ids = found.texts.ids[found.texts.starts[row] : found.texts.starts[row + 1]].tolist()
        inner = whole[first : first + len(ids) - second - len(template.pair_after)]
        assert ids == template.pair(tokenizer.encode(question, special=False).ids, inner)[0]
        if found.spans[row][0] >= 0:
            answer = tokenizer.decode(ids[found.spans[row][0] : found.spans[row][1] + 1])
            assert answer.strip().startswith("forest")
