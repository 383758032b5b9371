"""Tokenizers of other libraries: ids, offsets, templates and roles equal to those of transformers and sentencepiece."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import transformers
from refusing import refuses
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from firth import FirthError, SubwordTokenizer

CORPUS = [
    "The quick brown fox jumps over the lazy dog, isn't it? Numbers: 1,234.56 and 2019, 7,",
    "Ein Mädchen aß süße Äpfel und Brötchen in Zürich; Straße, Fluß, Übung, naïve façade.",
    "Les élèves préfèrent l'été à l'hiver, où ça coûte très cher à Noël.",
    "Быстрая коричневая лиса прыгает через ленивую собаку. Ёжик живёт в лесу.",
    "素早い茶色の狐がのろまな犬を飛び越える。中文 文本 在 这里。 한국어 문장도 있습니다.",
    "مرحبا بالعالم هذا نص عربي. שלום עולם זהו טקסט. नमस्ते दुनिया यह एक वाक्य है।",
    "emoji 😀 👩‍👩‍👧 ❤️ 🏳️‍🌈 ok; ligatures ﬁ ﬂ and full width ＡＢＣ １２３ Å ™ ½",
    "say `` hello '' now and then the the the and and of of of in in to to",
] * 4
MASK = {"content": "<mask>", "lstrip": True, "__type": "AddedToken"}  # as published models have it
ACCENTS = "cafe\u0301 vs café, Å vs A\u030a, ǅ İstanbul ẞ"
TEXTS = [
    *CORPUS[:8],
    "",
    " ",
    "   leading and trailing   ",
    "tabs\tand\nnew lines\r\n\r\nand  double   spaces",
    "nbsp\u00a0here\u2003em\u3000ideographic\u200bzero width\u00adsoft hyphen\ufeff",
    ACCENTS,
    "\x00 control \x07 characters \x1b and \ufffd",
    "unseen: ꙮ 𓀀 ⚂ ლამაზი ไทย",
    "x" * 300,
    "a<s>b</s> <pad> [CLS] [SEP] [MASK] <unk> <|endoftext|> <extra_id_3>",
    "the <mask> fox, the[MASK] dog <mask>",
    "1,234, 5, 2019, 99,",
]  # fmt: skip
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def compare(folder: Path, theirs: Any) -> SubwordTokenizer:
    """Compare ids, tokens, offsets and segments of texts and pairs, and the roles."""
    ours = SubwordTokenizer.load(folder)
    for text in TEXTS:
        expected = theirs(text, return_offsets_mapping=True)
        read = ours.encode(text)
        assert read.ids == expected["input_ids"], text
        assert read.offsets == [tuple(pair) for pair in expected["offset_mapping"]], text
        assert read.tokens == expected.tokens()
        plain = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, special=False).ids == plain
        assert ours.template.text(plain) == read.ids  # the template is what `encode` adds
        assert ours.decode(read.ids) == theirs.decode(read.ids, skip_special_tokens=True), text
    for first, second in PAIRS:
        expected = theirs.backend_tokenizer.encode(first, second)
        parts = [theirs(text, add_special_tokens=False)["input_ids"] for text in (first, second)]
        ids, position = ours.template.pair(*parts)
        assert ids == expected.ids
        if parts[1]:
            assert ours.template.segments == bool(expected.type_ids[position])
    for role in ("pad", "unk", "cls", "sep", "mask"):
        same = {"cls": "bos", "sep": "eos"}.get(role, role)
        token = getattr(theirs, f"{role}_token") or getattr(theirs, f"{same}_token")
        found = ours.special.get(role)
        if role == "unk" and ours.space == "Ġ" and found is None:
            continue  # byte-level BPE has no unknown text, and transformers names another token
        assert (found and found.token) == token, role
        if found:
            assert found.id == theirs.convert_tokens_to_ids(token)
    reopened = SubwordTokenizer.load(ours.save(folder / "again"))
    assert reopened.special == ours.special and reopened.template == ours.template
    assert reopened.encode_batch(TEXTS) == ours.encode_batch(TEXTS)
    return ours


# ---- sentencepiece ----


def train_sentencepiece(folder: Path, name: str, model_type: str, **settings: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.txt").write_text("\n".join(settings.pop("corpus", CORPUS)), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "trained"), model_type=model_type,
        vocab_size=settings.pop("vocab_size", 420), character_coverage=1.0, minloglevel=2,
        hard_vocab_limit=False, **settings,
    )  # fmt: skip
    return (folder / "trained.model").rename(folder / name)


#: family → file, type, training settings, transformers' class, tokenizer_config.json
SENTENCEPIECE: dict[str, tuple[str, str, dict[str, Any], Any, dict[str, Any]]] = {
    "xlm-roberta": (
        "sentencepiece.bpe.model", "unigram", {}, transformers.XLMRobertaTokenizer,
        {"mask_token": MASK},
    ),
    "camembert": ("sentencepiece.bpe.model", "unigram", {}, transformers.CamembertTokenizer, {}),
    "t5": (
        "spiece.model", "unigram", {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, transformers.T5Tokenizer,
        {"extra_ids": 10},
    ),
    "albert": (
        "spiece.model", "unigram", {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1,
        "control_symbols": "[CLS],[SEP],[MASK]"}, transformers.AlbertTokenizer, {},
    ),
    "albert cased": (
        "spiece.model", "unigram", {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1,
        "control_symbols": "[CLS],[SEP],[MASK]"}, transformers.AlbertTokenizer,
        {"do_lower_case": False, "keep_accents": True},
    ),
    "llama": (
        "tokenizer.model", "bpe",
        {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
         "split_digits": True, "vocab_size": 700}, transformers.LlamaTokenizer,
        {"add_bos_token": True, "add_eos_token": False},
    ),
    "llama legacy": (
        "tokenizer.model", "bpe",
        {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
         "vocab_size": 700}, transformers.LlamaTokenizer,
        {"add_bos_token": True, "add_eos_token": True, "legacy": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", SENTENCEPIECE)
def test_sentencepiece_models_as_in_transformers(family: str, tmp_path: Path) -> None:
    file, model_type, settings, theirs, config = SENTENCEPIECE[family]
    train_sentencepiece(tmp_path, file, model_type, **settings)
    write_json(tmp_path / "tokenizer_config.json", {**config, "tokenizer_class": theirs.__name__})
    write_json(tmp_path / "config.json", {"model_type": family.split()[0]})
    loaded = theirs.from_pretrained(tmp_path)
    ours = compare(tmp_path, loaded)
    assert ours.size == len(loaded)


def marian_folder(folder: Path) -> Path:
    """A folder of Marian: two models, of Latin scripts and of all texts, and a vocabulary of the pieces of both."""
    latin = [text for text in CORPUS if max(text) < "\u02af"]
    source = train_sentencepiece(folder, "source.spm", "unigram", vocab_size=260, corpus=latin)
    target = train_sentencepiece(folder, "target.spm", "unigram")
    models = [sentencepiece.SentencePieceProcessor(model_file=str(path)) for path in (source, target)]
    pieces = [model.id_to_piece(id) for model in models for id in range(3, len(model))]
    tokens = dict.fromkeys(["</s>", "<unk>", *pieces, ">>fra<<", ">>deu<<", "<pad>"])
    write_json(folder / "vocab.json", {token: id for id, token in enumerate(tokens)})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MarianTokenizer"})
    write_json(folder / "config.json", {"model_type": "marian"})
    return folder


def test_marian_as_in_transformers(tmp_path: Path) -> None:
    """Except for characters that only the target model knows, whose pieces Firth takes and transformers does not."""
    theirs, ours = (
        transformers.MarianTokenizer.from_pretrained(marian_folder(tmp_path)),
        SubwordTokenizer.load(tmp_path),
    )
    assert (ours.size, ours.special.require("pad").id) == (len(theirs), theirs.pad_token_id)
    source = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "source.spm"))
    compared = 0
    for text in [*TEXTS, ">>fra<< The quick fox", ">>deu<<The lazy dog"]:
        pieces = source.encode(text.removeprefix(">>fra<<").removeprefix(">>deu<<"), out_type=str)
        single = [piece.removeprefix("▁") for piece in pieces if source.piece_to_id(piece) == source.unk_id()]
        if any(character in ours.ids for piece in single for character in piece):
            continue
        expected = theirs(text)["input_ids"]
        assert ours.encode(text).ids == expected, text
        # Firth leaves language codes out, which are special tokens
        decoded = theirs.decode(expected, skip_special_tokens=True).removeprefix(">>fra<<").removeprefix(">>deu<<")
        assert ours.decode(expected).strip() == decoded.strip(), text
        compared += 1
    assert compared > 12


def test_damaged_marian_folders_are_refused(tmp_path: Path) -> None:
    vocab = json.loads((marian_folder(tmp_path) / "vocab.json").read_text(encoding="utf-8"))
    write_json(tmp_path / "vocab.json", {token: id for token, id in vocab.items() if token != "<unk>"})
    with refuses("invalid_tokenizer", missing="<unk>"):
        SubwordTokenizer.load(tmp_path)
    write_json(tmp_path / "vocab.json", {token: id for token, id in vocab.items() if id != 7})
    with refuses("invalid_tokenizer", missing=7):
        SubwordTokenizer.load(tmp_path)
    write_json(tmp_path / "vocab.json", vocab)
    write_json(tmp_path / "target_vocab.json", vocab)
    with refuses("invalid_tokenizer", file="target_vocab.json"):
        SubwordTokenizer.load(tmp_path)


def plain_texts() -> list[str]:
    """Texts without special tokens, which sentencepiece itself does not recognize in text."""
    return [text for text in TEXTS if "<" not in text and "[" not in text]


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("unigram", {}),
        ("unigram", {"normalization_rule_name": "nmt_nfkc_cf"}),
        ("unigram", {"byte_fallback": True, "vocab_size": 700}),
        ("unigram", {"add_dummy_prefix": False}),
        ("bpe", {}),
        ("bpe", {"byte_fallback": True, "vocab_size": 700}),
        ("bpe", {"split_by_whitespace": False}),
    ],
)
def test_unknown_families_have_the_ids_of_sentencepiece(model_type: str, settings: Any, tmp_path: Path) -> None:
    path = train_sentencepiece(tmp_path, "tokenizer.model", model_type, **settings)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    for ours in (SubwordTokenizer.load(path), SubwordTokenizer.load(tmp_path)):
        assert ours.template.added == 0 and ours.size == theirs.get_piece_size()
        folds_case = settings.get("normalization_rule_name") == "nmt_nfkc_cf"
        for (
            text
        ) in plain_texts():  # the engine normalizes a letter with its accents at once, sentencepiece the longest match
            if not (folds_case and text == ACCENTS):
                assert ours.encode(text).ids == theirs.encode(text), text


def test_xlm_roberta_ids_are_those_of_sentencepiece_plus_one(tmp_path: Path) -> None:
    path = train_sentencepiece(tmp_path, "sentencepiece.bpe.model", "unigram")
    theirs, ours = sentencepiece.SentencePieceProcessor(model_file=str(path)), SubwordTokenizer.load(tmp_path)
    for text in plain_texts():
        ids = [id + 1 if id else 3 for id in theirs.encode(text)]
        assert ours.encode(text).ids == [0, *ids, 2], text
    assert ours.special.mask and ours.special.mask.id == theirs.get_piece_size() + 1


# ---- vocab.txt, vocab.json with merges.txt ----

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]


def wordpiece_vocabulary(special: list[str], normalizer: Any) -> list[str]:
    engine = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer, engine.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    engine.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=500, special_tokens=special))
    vocab: dict[str, int] = engine.get_vocab()
    return sorted(vocab, key=vocab.__getitem__)


@pytest.mark.parametrize(
    ("settings", "model", "theirs"),
    [
        ({}, "bert", transformers.BertTokenizer),
        ({"do_lower_case": False}, "bert", transformers.BertTokenizer),
        ({"do_lower_case": True, "strip_accents": False}, "bert", transformers.BertTokenizer),
        ({"do_lower_case": False, "strip_accents": True}, "bert", transformers.BertTokenizer),
        ({"tokenize_chinese_chars": False}, "bert", transformers.BertTokenizer),
        ({}, "distilbert", transformers.DistilBertTokenizer),
        ({"mask_token": MASK}, "mpnet", transformers.MPNetTokenizer),
        ({"cls_token": "[PAD]", "sep_token": "[MASK]"}, "bert", transformers.BertTokenizer),
    ],
)
def test_vocab_txt_as_in_transformers(settings: dict[str, Any], model: str, theirs: Any, tmp_path: Path) -> None:
    special = [*FAIRSEQ, "[UNK]", "<mask>"] if model == "mpnet" else SPECIAL
    lowercase = settings.get("do_lower_case", True)
    normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=settings.get("strip_accents"))
    (tmp_path / "vocab.txt").write_text("\n".join([*wordpiece_vocabulary(special, normalizer), ""]), encoding="utf-8")
    write_json(tmp_path / "tokenizer_config.json", {**settings, "tokenizer_class": theirs.__name__})
    write_json(tmp_path / "config.json", {"model_type": model})
    compare(tmp_path, theirs.from_pretrained(tmp_path))


@pytest.mark.parametrize("settings", [{}, {"add_prefix_space": True}])
@pytest.mark.parametrize("model", ["gpt2", "roberta"])
def test_vocab_json_with_merges_as_in_transformers(model: str, settings: dict[str, Any], tmp_path: Path) -> None:
    special = [*FAIRSEQ, "<mask>"] if model == "roberta" else ["<|endoftext|>"]
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    engine.train_from_iterator(CORPUS, trainer)
    engine.model.save(str(tmp_path))
    theirs = transformers.RobertaTokenizer if model == "roberta" else transformers.GPT2Tokenizer
    mask = {"mask_token": MASK} if model == "roberta" else {}
    write_json(tmp_path / "tokenizer_config.json", {**settings, **mask, "tokenizer_class": theirs.__name__})
    write_json(tmp_path / "config.json", {"model_type": model})
    ours = compare(tmp_path, theirs.from_pretrained(tmp_path))
    assert (ours.template.added, ours.template.added_to_pair) == ((2, 4) if model == "roberta" else (0, 0))
    assert ours.continues_word[ours.ids["he"]] and not ours.continues_word[ours.ids["Ġthe"]]


# ---- tokenizer.json ----


def unigram() -> Tokenizer:
    engine = Tokenizer(models.Unigram())
    engine.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    engine.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(vocab_size=400, special_tokens=["<pad>", "<unk>", "<s>", "</s>"], unk_token="<unk>"),
    )
    engine.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    return engine


def byte_pairs() -> Tokenizer:
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}|\p{L}+|[^\p{N}\p{L}]+"), "isolated"),
            pre_tokenizers.ByteLevel(use_regex=False),
        ]
    )
    engine.decoder = decoders.ByteLevel()
    engine.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=500, special_tokens=["<|endoftext|>", "<|im_start|>"],
                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
    )  # fmt: skip
    return engine


def word_level() -> Tokenizer:
    engine = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    engine.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    engine.pre_tokenizer = pre_tokenizers.Whitespace()
    engine.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"]))
    engine.enable_padding(pad_token="[PAD]", pad_id=1)
    engine.add_tokens(["quick brown", "ö"])
    return engine


@pytest.mark.parametrize(
    ("make", "config"),
    [
        (unigram, {"cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}),
        (byte_pairs, {"eos_token": "<|im_start|>", "bos_token": "<|endoftext|>"}),
        (byte_pairs, {"eos_token": {"content": "<|im_start|>", "__type": "AddedToken"}, "pad_token": "<|endoftext|>"}),
        (word_level, {"unk_token": "[UNK]", "pad_token": "[PAD]"}),
    ],
)
def test_tokenizer_json_as_in_transformers(make: Callable[[], Tokenizer], config: Any, tmp_path: Path) -> None:
    make().save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "tokenizer_config.json", {**config, "tokenizer_class": "PreTrainedTokenizerFast"})
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    theirs.backend_tokenizer.no_padding()
    ours = SubwordTokenizer.load(tmp_path)
    for text in TEXTS:
        expected = theirs(text, return_offsets_mapping=True)
        assert ours.encode(text).ids == expected["input_ids"]
        assert ours.encode(text).offsets == [tuple(pair) for pair in expected["offset_mapping"]]
    for role in ("pad", "unk", "cls", "sep", "mask", "bos", "eos"):
        if token := getattr(theirs, f"{role}_token"):
            found = ours.special.get(role)
            assert found and found.token == token and found.id == theirs.convert_tokens_to_ids(token)


def test_roles_without_any_declaration() -> None:
    """The template, the model's unknown token and usual names decide."""
    read = SubwordTokenizer(unigram())
    assert [(role, each.token) for role, each in read.special.by_role.items()] == [
        ("pad", "<pad>"), ("unk", "<unk>"), ("cls", "<s>"), ("sep", "</s>"),
    ]  # fmt: skip
    assert read.special.bos == read.special.cls and read.special.mask is None
    assert read.template.segments and read.template.added_to_pair == 3
    with refuses("unknown_token", role="mask", available="pad <pad>, unk <unk>, cls <s>, sep </s>"):
        read.special.require("mask")


def test_roles_from_the_ids_of_config_json(tmp_path: Path) -> None:
    byte_pairs().save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "config.json", {"eos_token_id": [1, 0], "pad_token_id": 5, "bos_token_id": 10**9})
    special = SubwordTokenizer.load(tmp_path).special
    assert special.require("eos").token == "<|im_start|>" and special.require("pad").id == 5


# ---- damaged and hostile files ----


@pytest.mark.parametrize(
    ("files", "values"),
    [
        ({"tokenizer_config.json": []}, {}),
        ({"tokenizer_config.json": {"cls_token": 5}}, {"key": "cls_token", "got": 5}),
        ({"tokenizer_config.json": {"do_lower_case": "yes"}}, {"key": "do_lower_case", "got": "yes"}),
        ({"special_tokens_map.json": {"mask_token": {"content": [1]}}}, {"key": "mask_token"}),
        ({"tokenizer_config.json": {"added_tokens_decoder": {"x": {"content": "a"}}}}, {}),
        ({"tokenizer_config.json": {"added_tokens_decoder": [1]}}, {}),
        ({"tokenizer_config.json": {"added_tokens_decoder": {"999999999": {"content": "@@"}}}}, {"got": 999999999}),
        ({"added_tokens.json": {"@@": "many"}}, {}),
    ],
)
def test_wrong_settings_are_refused(files: dict[str, Any], values: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "a", "b", ""]))
    for name, content in files.items():
        write_json(tmp_path / name, content)
    with refuses("invalid_tokenizer", **values):
        SubwordTokenizer.load(tmp_path)


def test_unknown_family_of_vocab_json_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "vocab.json", {"a": 0})
    (tmp_path / "merges.txt").write_text("")
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"})
    with refuses("invalid_tokenizer", family="qwen2", tokenizer="tokenizer.json"):
        SubwordTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"IQ== 0\nIg== 1\n",  # a tiktoken file
        b"\x0a\xff\xff\xff\xff\x0f",  # a piece of 4 GiB
        b"\x0a\x02\x0a\x05",  # a text that is longer than its piece
        b"\xff" * 20,
        b"\x0b\x00",  # a group
        b"\x0a\x03\x0a\x01\xff",  # a text that is not UTF-8
        b"\x0a\x05\x15\x00\x00\xc0\x7f",  # a score that is not a number
        b"\x08\x01",  # a number where a piece is expected
        b"\x0a\x03\x0a\x01a\x0a\x03\x0a\x01a",  # the same piece twice
        b"\x0a\x03\x0a\x01a\x12\x03\xc0\x02\x63",  # unk_id 99 of one piece
        b"\x0a\x03\x0a\x01a\x12\x02\x18\x04",  # the type char
    ],
)
def test_damaged_sentencepiece_models_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(data)
    with refuses("invalid_tokenizer", path=str(tmp_path / "tokenizer.model")):
        SubwordTokenizer.load(tmp_path)


@pytest.mark.parametrize("extra", ["many", -1, 10**9, True])
def test_wrong_numbers_of_extra_ids_are_refused(extra: Any, tmp_path: Path) -> None:
    train_sentencepiece(tmp_path, "spiece.model", "unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": extra})
    with refuses("invalid_tokenizer", got=extra):
        SubwordTokenizer.load(tmp_path)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_changed_sentencepiece_models_are_refused_or_read(model_type: str, tmp_path: Path) -> None:
    """There is never a crash, a panic or another kind of error."""
    path = train_sentencepiece(tmp_path, "tokenizer.model", model_type)
    complete, dice, refused = path.read_bytes(), random.Random(3), 0
    for round in range(120):
        data = bytearray(complete)
        if round % 3:
            for _ in range(dice.randint(1, 6)):
                data[dice.randrange(len(data))] = dice.randrange(256)
        else:
            data = data[: dice.randrange(len(data))]
        path.write_bytes(data)
        try:
            SubwordTokenizer.load(path).encode_batch(TEXTS)
        except FirthError as error:
            assert error.code in ("invalid_tokenizer", "invalid_encoding")
            refused += 1
    assert refused > 20
