"""/api/senses: contextual vectors of one word in several sentences, layer by layer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.model import Contextual
from firth.maps.senses import layer_trajectories, occurrence_labels
from firth.server.errors import RequestError
from firth.server.workbench.asking import MAX_KEY, MAX_TEXT, model_with, rounded

router = APIRouter()

MAX_OCCURRENCES = 10  # distinguishable colors


class SensesBody(BaseModel):
    """Texts with a word whose contextual vectors are compared."""

    model: str
    texts: list[Annotated[str, Field(max_length=MAX_TEXT)]] = Field(max_length=MAX_OCCURRENCES)
    word: str = Field(max_length=MAX_KEY)
    subword_pooling: Literal["mean", "first", "last"] = "mean"


@router.post("/senses")
def senses(body: SensesBody, request: Request) -> dict[str, Any]:
    """Return the occurrences of a word, the distances of its vectors in each layer, and their 2-D trajectories."""
    model: Contextual = model_with(request, body.model, "contextual", "bert and gpt models have contextual vectors")
    texts = [text for text in body.texts if text.strip()]
    if not texts or not body.word.strip():
        raise RequestError(400, "Enter a word, and sentences that contain it.", field="texts")
    result = model.senses(texts, body.word.strip(), body.subword_pooling)
    if len(result.occurrences) > MAX_OCCURRENCES:
        raise RequestError(
            400, f"The plot shows at most {MAX_OCCURRENCES} occurrences of a word; got {len(result.occurrences)}."
        )
    trajectories, centered = layer_trajectories(result), layer_trajectories(result, center_layers=True)
    return {
        "word": result.word,
        "occurrences": [
            {"label": label, "text": result.texts[occurrence.text], "begin": occurrence.begin, "end": occurrence.end}
            for label, occurrence in zip(occurrence_labels(result), result.occurrences, strict=True)
        ],
        "distances": rounded(result.distances),
        "others": rounded(result.others),
        "trajectories": {"points": rounded(trajectories.points), "explained": rounded(trajectories.explained, 3)},
        "centered": {"points": rounded(centered.points), "explained": rounded(centered.explained, 3)},
    }
