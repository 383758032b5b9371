"""/api/fill, /api/write and /api/answer: words for blanks, next words, answers in a passage."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.model import Answers, Fills, Generates
from firth.server.errors import RequestError
from firth.server.workbench.asking import MOST_TEXT, model_that

router = APIRouter()

MOST_TAKEN = 2000


class Blanks(BaseModel):
    model: str
    text: str = Field(max_length=MOST_TEXT)
    k: int = Field(8, ge=1, le=50)


class Begun(BaseModel):
    model: str
    prompt: str = Field("", max_length=MOST_TEXT)
    taken: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list, max_length=MOST_TAKEN)
    tokens: int = Field(1, ge=1, le=100)
    k: int = Field(10, ge=1, le=50)
    temperature: float = Field(1.0, ge=0, le=10, allow_inf_nan=False)
    top_k: int = Field(0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(1, ge=0, lt=2**63)


class Asked(BaseModel):
    model: str
    question: str = Field(max_length=2000)
    passage: str = Field(max_length=200_000)


@router.post("/fill")
def fill(blanks: Blanks, request: Request) -> dict[str, Any]:
    """The likeliest tokens of each [MASK]."""
    model: Fills = model_that(
        request, blanks.model, "fills", "bert models with a head for masked words do, and models of skipgram and cbow"
    )
    found = model.fill(blanks.text, blanks.k)
    return {"blanks": [[{"token": token, "probability": chance} for token, chance in blank] for blank in found]}


@router.post("/write")
def write(begun: Begun, request: Request) -> dict[str, Any]:
    """The next tokens, one by one, with those that each was chosen from; and the tokens that were taken before."""
    model: Generates = model_that(request, begun.model, "generates", "gpt models write")
    settings = {name: getattr(begun, name) for name in ("temperature", "top_k", "top_p", "seed")}
    found = model.generate_tokens(begun.prompt, begun.taken, begun.tokens, begun.k, **settings)
    steps = [
        {"token": step.token._asdict(), "candidates": [each._asdict() for each in step.candidates]} for step in found
    ]
    return {"steps": steps, "taken": [each._asdict() for each in model.token_probabilities(begun.prompt, begun.taken)]}


@router.post("/answer")
def answer(asked: Asked, request: Request) -> dict[str, Any]:
    """The stretch of the passage that answers the question; an empty one where it does not tell."""
    model: Answers = model_that(request, asked.model, "answers", "what firth finetune question-answerer makes does")
    if not asked.question.strip() or not asked.passage.strip():
        raise RequestError(400, "Give a question, and a passage that may answer it.", field="question")
    return model.answer([asked.question], [asked.passage])[0]._asdict()
