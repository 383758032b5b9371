"""/api/senses: one word in several sentences, layer by layer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.model import Contextual
from firth.maps.senses import layer_trajectories, occurrence_labels
from firth.server.errors import RequestError
from firth.server.workbench.asking import MOST_KEY, MOST_TEXT, model_that, rounded

router = APIRouter()

MOST_PLACES = 10  # so many colours are told apart


class Asked(BaseModel):
    model: str
    texts: list[Annotated[str, Field(max_length=MOST_TEXT)]] = Field(max_length=MOST_PLACES)
    word: str = Field(max_length=MOST_KEY)
    pieces: Literal["mean", "first", "last"] = "mean"


@router.post("/senses")
def senses(asked: Asked, request: Request) -> dict[str, Any]:
    """Where the word stands, how far apart its vectors are in each layer, and their ways on a plane."""
    model: Contextual = model_that(
        request, asked.model, "contextual", "bert and gpt models have a vector for each place"
    )
    texts = [text for text in asked.texts if text.strip()]
    if not texts or not asked.word.strip():
        raise RequestError(400, "Give a word, and sentences that it stands in.", field="texts")
    found = model.senses(texts, asked.word.strip(), asked.pieces)
    if len(found.occurrences) > MOST_PLACES:
        raise RequestError(
            400, f"The picture shows {MOST_PLACES} places of a word; it stands in {len(found.occurrences)}."
        )
    ways, apart = layer_trajectories(found), layer_trajectories(found, center_layers=True)
    return {
        "word": found.word,
        "places": [
            {"label": label, "text": found.texts[place.text], "begin": place.begin, "end": place.end}
            for label, place in zip(occurrence_labels(found), found.occurrences, strict=True)
        ],
        "distances": rounded(found.distances),
        "others": rounded(found.others),
        "ways": {"points": rounded(ways.points), "explained": rounded(ways.explained, 3)},
        "apart": {"points": rounded(apart.points), "explained": rounded(apart.explained, 3)},
    }
