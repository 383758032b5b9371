"""/api/fill, /api/next-sentence, /api/write and /api/answer: the predictions of language models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.model import Answers, Fills, GeneratesTokens, PredictsNextSentence
from firth.server.errors import RequestError
from firth.server.workbench.asking import MAX_TEXT, model_with

router = APIRouter()

MAX_TOKENS = 2000


class FillBody(BaseModel):
    """A text with [MASK] tokens."""

    model: str
    text: str = Field(max_length=MAX_TEXT)
    k: int = Field(8, ge=1, le=50)


class PairBody(BaseModel):
    """A pair of texts, whose next-sentence probability is asked for."""

    model: str
    first: str = Field(max_length=MAX_TEXT)
    second: str = Field(max_length=MAX_TEXT)


class WriteBody(BaseModel):
    """A prompt or a source text, the tokens generated so far, and how the next are sampled."""

    model: str
    prompt: str = Field("", max_length=MAX_TEXT)
    generated: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list, max_length=MAX_TOKENS)
    tokens: int = Field(1, ge=1, le=100)
    k: int = Field(10, ge=1, le=50)
    temperature: float = Field(1.0, ge=0, le=10, allow_inf_nan=False)
    top_k: int = Field(0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)


class AnswerBody(BaseModel):
    """A question and the passage with its answer."""

    model: str
    question: str = Field(max_length=2000)
    passage: str = Field(max_length=200_000)


@router.post("/fill")
def fill(body: FillBody, request: Request) -> dict[str, Any]:
    """Return the most probable tokens for each [MASK]."""
    model: Fills = model_with(
        request,
        body.model,
        "fills",
        "bert models with a masked language modeling head do, and skipgram and cbow models",
    )
    predictions = model.fill(body.text, body.k)
    return {
        "blanks": [
            [{"token": token, "probability": probability} for token, probability in blank] for blank in predictions
        ]
    }


@router.post("/next-sentence")
def next_sentence(body: PairBody, request: Request) -> dict[str, float]:
    """Return the probability that the second text follows the first one."""
    model: PredictsNextSentence = model_with(
        request, body.model, "next_sentence", "bert models with a next-sentence head do"
    )
    return {"probability": float(model.next_sentence([body.first], [body.second])[0])}


@router.post("/write")
def write(body: WriteBody, request: Request) -> dict[str, Any]:
    """Generate the next tokens, each with its candidates, and return the tokens so far."""
    model: GeneratesTokens = model_with(
        request, body.model, "generates_tokens", "gpt models generate text, and seq2seq models translations"
    )
    settings = {name: getattr(body, name) for name in ("temperature", "top_k", "top_p", "seed")}
    steps = [
        {"token": step.token._asdict(), "candidates": [token._asdict() for token in step.candidates]}
        for step in model.generate_tokens(body.prompt, body.generated, body.tokens, body.k, **settings)
    ]
    generated = model.token_probabilities(body.prompt, body.generated)
    return {"steps": steps, "generated": [token._asdict() for token in generated]}


@router.post("/answer")
def answer(body: AnswerBody, request: Request) -> dict[str, Any]:
    """Return the span of the passage that answers the question; empty if there is no answer."""
    model: Answers = model_with(request, body.model, "answers", "models of firth finetune question-answerer do")
    if not body.question.strip() or not body.passage.strip():
        raise RequestError(400, "Enter a question, and a passage that may answer it.", field="question")
    return model.answer([body.question], [body.passage])[0]._asdict()
