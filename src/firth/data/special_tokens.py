"""Special tokens by role (padding, unknown, begin, separator, mask), and the template that puts them around texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from firth.core.errors import FirthError

ROLES = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")
SAME = {"cls": "bos", "sep": "eos", "bos": "cls", "eos": "sep"}  # a tokenizer may declare only one of the two
BERT_NAMES = {role: f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
FAIRSEQ_NAMES = {
    "pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>", "bos": "<s>", "eos": "</s>",
}  # fmt: skip
#: Names by which a role is recognized if no file declares it.
USUAL_NAMES = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "mask": ("[MASK]", "<mask>"),
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
    "bos": ("<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>"),
    "eos": ("</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"),
}


class SpecialToken(NamedTuple):
    """A special token and its id."""

    token: str
    id: int


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a tokenizer by role; None for a role that no token has.

    `cls` and `sep` begin and end a text of an encoder, `bos` and `eos` one of a decoder. A tokenizer that declares only
    one of the two uses it for both.
    """

    by_role: Mapping[str, SpecialToken] = field(default_factory=dict)  # as declared

    def get(self, role: str) -> SpecialToken | None:
        """Return the token of a role."""
        return self.by_role.get(role) or self.by_role.get(SAME.get(role, role))

    def require(self, role: str) -> SpecialToken:
        """Return the token of a role; raise unknown_token if there is none."""
        if (token := self.get(role)) is None:
            raise FirthError(
                "unknown_token",
                "This tokenizer has no {role} token; it has {available}.",
                role=role,
                available=", ".join(f"{name} {each.token}" for name, each in self.by_role.items()) or "none",
            )
        return token

    @property
    def pad(self) -> SpecialToken | None:
        """The token that fills unused positions."""
        return self.get("pad")

    @property
    def unk(self) -> SpecialToken | None:
        """The token for what the vocabulary cannot encode."""
        return self.get("unk")

    @property
    def cls(self) -> SpecialToken | None:
        """The first token of a text."""
        return self.get("cls")

    @property
    def sep(self) -> SpecialToken | None:
        """The token after a text, also between the texts of a pair."""
        return self.get("sep")

    @property
    def mask(self) -> SpecialToken | None:
        """The token at masked positions."""
        return self.get("mask")

    @property
    def bos(self) -> SpecialToken | None:
        """The token before a generated text."""
        return self.get("bos")

    @property
    def eos(self) -> SpecialToken | None:
        """The token after a generated text."""
        return self.get("eos")

    def config(self) -> dict[str, str]:
        """Return the entries of tokenizer_config.json: pad_token, unk_token, …"""
        return {f"{role}_token": each.token for role, each in self.by_role.items()}


class Template(NamedTuple):
    """The ids that a tokenizer adds: before and after a text; before, between and after the texts of a pair.

    BERT has [CLS] A [SEP] B [SEP] with segments 0 and 1, RoBERTa <s> A </s> </s> B </s> with segment 0 only.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    pair_before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    pair_after: tuple[int, ...] = ()
    segments: bool = False  # the second text of a pair has segment 1

    @property
    def added(self) -> int:
        """The number of tokens added to a text."""
        return len(self.before) + len(self.after)

    @property
    def added_to_pair(self) -> int:
        """The number of tokens added to a pair."""
        return len(self.pair_before) + len(self.between) + len(self.pair_after)

    def text(self, ids: Iterable[int]) -> list[int]:
        """Return the ids of a text with the special tokens."""
        return [*self.before, *ids, *self.after]

    def truncated(self, ids: Sequence[int], limit: int) -> list[int]:
        """Return the ids of a text with special tokens, cut to `limit` tokens with the same ones at the end."""
        return list(ids) if len(ids) <= limit else [*ids[: limit - len(self.after)], *self.after]

    def pair(self, first: Sequence[int], second: Iterable[int]) -> tuple[list[int], int]:
        """Return the ids of a pair with the special tokens, and the position of the second text."""
        begin = [*self.pair_before, *first, *self.between]
        return [*begin, *second, *self.pair_after], len(begin)

    @classmethod
    def enclosing(cls, before: int, after: int) -> Template:
        """Return the template before A after, and before A after B after, in one segment."""
        return cls((before,), (after,), (before,), (after,), (after,))


def template_of(engine: Any, tk: Any) -> Template:
    """Return the template of an engine of the package `tokenizers` (`tk`): what it adds to words of another one."""
    probe = tk.Tokenizer(tk.models.WordLevel({"a": 0}, unk_token="a"))
    if engine.post_processor is not None:
        probe.post_processor = engine.post_processor
    parts, segments = [], False
    for texts in (("a",), ("a", "a")):
        encoding = probe.encode(*texts)
        positions = [position for position, text in enumerate(encoding.sequence_ids) if text is not None]
        if [encoding.sequence_ids[position] for position in positions] != list(range(len(texts))):
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer's template must contain each of {texts} texts once and in order; it gives {tokens}. "
                "Check its post_processor.",
                texts=len(texts),
                tokens=" ".join(encoding.tokens),
            )
        ends = zip([-1, *positions], [*positions, len(encoding.ids)], strict=True)
        parts += [tuple(encoding.ids[begin + 1 : end]) for begin, end in ends]
        segments = encoding.type_ids[positions[-1]] != encoding.type_ids[positions[0]]
    before, after, pair_before, between, pair_after = parts
    return Template(before, after, pair_before, between, pair_after, segments)


def declared_names(documents: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return role → token as the files declare it; the first of several declarations counts.

    `documents` are pairs of a file name and its content: tokenizer_config.json and special_tokens_map.json.
    """
    names: dict[str, str] = {}
    for file, document in documents:
        for role in ROLES:
            value = document.get(f"{role}_token")
            content = value.get("content") if isinstance(value, Mapping) else value
            if content is not None and not isinstance(content, str):
                raise FirthError(
                    "invalid_tokenizer",
                    "{file}: {key} must be a token; got {got!r:.60}.",
                    file=file,
                    key=f"{role}_token",
                    got=value,
                )
            if content:
                names.setdefault(role, content)
    return names


def declared_ids(config: Mapping[str, Any]) -> dict[str, int]:
    """Return role → id as a model's config.json declares it (bos_token_id, …); of several ids the first."""
    ids: dict[str, int] = {}
    for role in ROLES:
        value = config.get(f"{role}_token_id")
        first = value[0] if isinstance(value, list) and value else value
        if type(first) is int:
            ids[role] = first
    return ids


def special_tokens_of(
    ids: Mapping[str, int],
    tokens: Mapping[int, str],
    names: Mapping[str, str],
    role_ids: Mapping[str, int],
    template: Template,
    unknown: str | None,
) -> SpecialTokens:
    """Return the special tokens by role.

    In order: `unknown`, the token that the model gives to unknown text; `names` as declared in files; the template;
    `role_ids` of config.json; usual names.
    """
    named = {**names, **({"unk": unknown} if unknown else {})}
    by_role = {role: SpecialToken(token, ids[token]) for role, token in named.items() if token in ids}

    def add(role: str, id: int) -> None:
        if id in tokens and role not in by_role and SAME.get(role) not in by_role:
            by_role[role] = SpecialToken(tokens[id], id)

    if template.before:
        add("cls", template.before[0])
    if template.after:
        add("sep", template.after[-1])
    for role, id in role_ids.items():
        add(role, id)
    for role, usual in USUAL_NAMES.items():
        token = next((token for token in usual if token in ids), None)
        if token is not None:
            add(role, ids[token])
    return SpecialTokens({role: by_role[role] for role in ROLES if role in by_role})
