"""/api/attention: where a network looks, and the numbers of one look."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.data.subword_tokenizer import SubwordTokenizer
from firth.maps.attention import SPECIAL_TOKENS, visible
from firth.server.errors import RequestError
from firth.server.workbench.asking import MOST_TEXT, model_that, rounded

router = APIRouter()

MOST_TOKENS = 96  # beyond, words can't be read in the picture
WHOLE = 10_000  # weights are sent as whole numbers of this: a third of the bytes


class Asked(BaseModel):
    model: str
    text: str = Field(min_length=1, max_length=MOST_TEXT)
    other: str | None = Field(None, max_length=MOST_TEXT)


class Look(Asked):
    layer: int = Field(ge=1)
    head: int = Field(ge=1)
    query: int = Field(ge=1)


def attending(asked: Asked, request: Request) -> Any:
    found: Any = model_that(request, asked.model, "attends", "bert, gpt and seq2seq models look at words")
    if not asked.text.strip():
        raise RequestError(400, "There is nothing to look at: type a sentence.", field="text")
    tokenizer: SubwordTokenizer = getattr(found, "base", found).tokenizer
    for text in (asked.text, asked.other or ""):  # before the network makes n² numbers of them
        check_room(len(tokenizer.ids_batch([text], special=False)[0]))
    return found


def check_room(tokens: int) -> None:
    if tokens > MOST_TOKENS:
        raise RequestError(400, f"The picture has room for {MOST_TOKENS} tokens; got {tokens}. Shorten the text.")


@router.post("/attention")
def attention(asked: Asked, request: Request) -> dict[str, Any]:
    """The tokens, and the weights of each layer and head as whole numbers of `whole`."""
    model = attending(asked, request)
    found = model.attention(asked.text, asked.other or None)
    check_room(max(len(found.queries), len(found.keys)))
    layers, heads = found.weights.shape[:2]
    return {
        "kind": kind_of(model),
        "layers": layers,
        "heads": heads,
        "queries": [visible(token) for token in found.queries],
        "keys": [visible(token) for token in found.keys],
        "segments": list(found.segments),
        "marks": [token in SPECIAL_TOKENS for token in found.keys],
        "whole": WHOLE,
        "weights": (found.weights * WHOLE).round().astype(int).tolist(),
    }


def kind_of(model: Any) -> str:
    """Who looks at whom: cross (a translation at its source), causal (words at those before them) or both sides."""
    base = getattr(model, "base", model)
    if hasattr(base, "translate"):
        return "cross"
    return "causal" if hasattr(base, "generate") else "both"


@router.post("/attention/steps")
def steps(look: Look, request: Request) -> dict[str, Any]:
    """softmax(q·k / √d) v for one token of one head, number by number."""
    found = attending(look, request).attention_steps(
        look.text, look.other or None, layer=look.layer, head=look.head, query=look.query
    )
    check_room(len(found.keys))
    numbers = {name: rounded(part) for name, part in found._asdict().items() if name != "allowed"}
    return numbers | {"allowed": found.allowed.tolist(), "dim": len(found.query)}
