"""/api/attention: attention weights, and the computation of one head step by step."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.model import Generates, Model, Translates, base_model
from firth.data.subword_tokenizer import HasSubwordTokenizer
from firth.maps.attention import SPECIAL_TOKENS, visible
from firth.server.errors import RequestError
from firth.server.workbench.asking import MAX_TEXT, model_with, rounded

router = APIRouter()

MAX_TOKENS = 96  # with more, tokens cannot be read in the plot
WEIGHT_SCALE = 10_000  # weights are sent as integers, scaled by this: a third of the bytes


class AttentionBody(BaseModel):
    """A text, or a text and its translation."""

    model: str
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    other: str | None = Field(None, max_length=MAX_TEXT)


class HeadBody(AttentionBody):
    """A query position of one head."""

    layer: int = Field(ge=1)
    head: int = Field(ge=1)
    query: int = Field(ge=1)


def attention_model(body: AttentionBody, request: Request) -> Any:
    """Return the model of a request, which must have attention, after checking the text."""
    model = model_with(request, body.model, "attends", "bert, gpt and seq2seq models have attention")
    if not body.text.strip():
        raise RequestError(400, "The text is empty; enter a sentence.", field="text")
    assert isinstance(model, HasSubwordTokenizer)
    for text in (body.text, body.other or ""):  # before the network computes n² weights
        check_tokens(len(model.tokenizer.ids_batch([text], special=False)[0]))
    return model


def check_tokens(tokens: int) -> None:
    """Refuse texts with more tokens than the plot shows."""
    if tokens > MAX_TOKENS:
        raise RequestError(400, f"The plot shows at most {MAX_TOKENS} tokens; got {tokens}. Shorten the text.")


@router.post("/attention")
def attention(body: AttentionBody, request: Request) -> dict[str, Any]:
    """Return the tokens, and the weights of each layer and head as integers, scaled by `scale`."""
    model = attention_model(body, request)
    weights = model.attention(body.text, body.other or None)
    check_tokens(max(len(weights.queries), len(weights.keys)))
    layers, heads = weights.weights.shape[:2]
    return {
        "kind": kind_of(model),
        "layers": layers,
        "heads": heads,
        "queries": [visible(token) for token in weights.queries],
        "keys": [visible(token) for token in weights.keys],
        "segments": list(weights.segments),
        "special": [token in SPECIAL_TOKENS for token in weights.keys],
        "scale": WEIGHT_SCALE,
        "weights": (weights.weights * WEIGHT_SCALE).round().astype(int).tolist(),
    }


def kind_of(model: Model) -> str:
    """Return the kind of attention: cross (target to source), causal, or both (bidirectional)."""
    base = base_model(model)
    if isinstance(base, Translates):
        return "cross"
    return "causal" if isinstance(base, Generates) else "both"


@router.post("/attention/steps")
def steps(body: HeadBody, request: Request) -> dict[str, Any]:
    """Return the steps of softmax(q·k / √d) v for one token of one head."""
    trace = attention_model(body, request).attention_steps(
        body.text, body.other or None, layer=body.layer, head=body.head, query=body.query
    )
    check_tokens(len(trace.keys))
    numbers = {name: rounded(part) for name, part in trace._asdict().items() if name != "allowed"}
    return numbers | {"allowed": trace.allowed.tolist(), "dim": len(trace.query)}
