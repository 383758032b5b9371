"""The routes of Hugging Face's text-embeddings-inference. `model` selects a model; the default is the first."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from firth.core.long_texts import TRUNCATE
from firth.core.model import Estimates, FineTuned, HasLabels, HasStates, Predicts, base_model
from firth.core.report import Nothing
from firth.core.vectors import unit_rows
from firth.data.subword_tokenizer import HasSubwordTokenizer
from firth.server.bodies import (
    PROMPT,
    PROMPT_NAME,
    Body,
    Direct,
    Input,
    Integer,
    Texts,
    error_responses,
    inputs_of,
    json_response,
    parse_body,
    route_docs,
)
from firth.server.embedding import Embedding, check_count, finite_lists
from firth.server.errors import RequestError
from firth.server.models import Models
from firth.server.reading import over_limit
from firth.server.settings import Settings
from firth.version import __version__

router = APIRouter(tags=["text-embeddings-inference"], route_class=Direct)
STATUSES = (400, 404, 413, 422, 429, 503, 504)
TEXTS = "a text, or a list of texts"
Text = Annotated[str, Field(min_length=1)]


class ModelBody(Body):
    """A body that can name a model."""

    model: str | None = Field(None, description="Name of the model; the first by default.")


class EmbedBody(ModelBody):
    """Texts to embed."""

    inputs: Input
    normalize: bool = True
    truncate: bool | None = None
    dimensions: Integer | None = Field(None, ge=1)
    prompt_name: str | None = PROMPT_NAME
    prompt: str | None = PROMPT


class AllBody(ModelBody):
    """Texts of which every token is embedded."""

    inputs_help = TEXTS
    inputs: Text | Texts
    truncate: bool | None = None


class Sentences(Body):
    """A sentence, and those to compare it with."""

    source_sentence: Text
    sentences: Texts


class Parameters(Body):
    """How sentences are embedded."""

    truncate: bool | None = None
    prompt_name: str | None = PROMPT_NAME


class SimilarityBody(ModelBody):
    """Sentences to compare."""

    inputs_help = "source_sentence, a text, and sentences, a list of texts"
    inputs: Sentences
    parameters: Parameters = Parameters()


class TokenizeBody(ModelBody):
    """Texts to tokenize."""

    inputs_help = TEXTS
    inputs: Text | Texts
    add_special_tokens: bool = True


class Token(BaseModel):
    """A token and its characters in the text."""

    id: int | None
    text: str
    special: bool
    start: int | None
    stop: int | None


Pair = Annotated[list[Text], Field(min_length=1, max_length=2)]


class PredictBody(ModelBody):
    """Texts or pairs to classify."""

    inputs_help = 'a text, a pair ["a", "b"], or a list of such as ["a"] and ["a", "b"]'
    model: str | None = Field(None, description="Name of the model; by default the first that predicts.")
    inputs: Text | Pair | Annotated[list[Pair], Field(min_length=1)] = Field(
        description='A text, or a pair ["a", "b"]; for several inputs, a list of lists: [["a"], ["b"]].'
    )
    truncate: bool | None = None
    raw_scores: Literal[False] = False


class Prediction(BaseModel):
    """A label with its score."""

    label: str
    score: float


def name_of(request: Request, body: ModelBody) -> str:
    """Return the name of the requested model, or of the first."""
    names = request.app.state.models.names()
    if body.model is None and not names:
        raise RequestError(404, "The server has no models.", field="model")
    return names[0] if body.model is None else body.model


@router.post("/embed", **route_docs(EmbedBody, list[list[float]], *STATUSES))
async def embed(request: Request) -> Response:
    """Embed texts; vectors have norm 1 unless `normalize` is false."""
    body = await parse_body(request, EmbedBody)
    run: Embedding = request.app.state.embedding
    embedded = await run(
        name_of(request, body),
        inputs_of(body.inputs),
        truncate=body.truncate,
        dimensions=body.dimensions,
        normalize=body.normalize,
        prompt_name=body.prompt_name,
        prompt=body.prompt,
    )
    return json_response(to_json(finite_lists(embedded.matrix)), embedded.truncated)


@router.post("/similarity", **route_docs(SimilarityBody, list[float], *STATUSES))
async def similarity(request: Request) -> Response:
    """Return the cosine similarity of a sentence to each of several others."""
    body = await parse_body(request, SimilarityBody)
    run: Embedding = request.app.state.embedding
    texts = [body.inputs.source_sentence, *body.inputs.sentences]
    parameters = body.parameters
    embedded = await run(
        name_of(request, body), texts, truncate=parameters.truncate, prompt_name=parameters.prompt_name
    )
    rows = unit_rows(embedded.matrix)
    return json_response(to_json((rows[1:] @ rows[0]).tolist()), embedded.truncated)


@router.post("/embed_all", **route_docs(AllBody, list[list[list[float]]], *STATUSES))
async def embed_all(request: Request) -> Response:
    """Return the contextual vector of each token, including special tokens."""
    body = await parse_body(request, AllBody)
    return await run_in_threadpool(all_vectors, request, body)


def all_vectors(request: Request, body: AllBody) -> Response:
    """Compute the token vectors, in a thread."""
    run: Embedding = request.app.state.embedding
    settings: Settings = request.app.state.settings
    reader = run.open(name_of(request, body))
    texts = inputs_of(body.inputs)
    check_count(texts, settings.inputs)
    model = base_model(reader.model)
    if not isinstance(model, HasStates):
        raise RequestError(400, "This model has only one vector per text; use a transformer model.")
    reading = reader.read(texts, settings.on_long(body.truncate))
    if sum(reading.tokens) > min(settings.batch_tokens, settings.answer_numbers // reader.dim):
        raise RequestError(413, f"{sum(reading.tokens):,} tokens exceed the size of a response.", kind="too_large")
    if reading.truncated:
        texts = [reader.shortened(text) for text in texts]
    return json_response(to_json([finite_lists(model.states(text)[-1]) for text in texts]), reading.truncated)


@router.post("/tokenize", **route_docs(TokenizeBody, list[list[Token]], *STATUSES))
async def tokenize(request: Request) -> Response:
    """Return the tokens of each text."""
    body = await parse_body(request, TokenizeBody)
    return await run_in_threadpool(tokens_of, request, body)


def tokens_of(request: Request, body: TokenizeBody) -> Response:
    """Tokenize the texts, in a thread."""
    texts = inputs_of(body.inputs)
    check_count(texts, request.app.state.settings.inputs)
    run: Embedding = request.app.state.embedding
    reader = run.open(name_of(request, body))
    return JSONResponse([reader.tokens(text, body.add_special_tokens) for text in texts])


@router.post("/predict", **route_docs(PredictBody, list[Prediction] | list[list[Prediction]], *STATUSES))
async def predict(request: Request) -> Response:
    """Return all labels of a text with their probabilities, best first; for a regression model, the value."""
    body = await parse_body(request, PredictBody)
    return await run_in_threadpool(predictions, request, body)


def predictions(request: Request, body: PredictBody) -> Response:
    """Compute the predictions, in a thread."""
    served: Models = request.app.state.models
    first = name_of(request, body)
    names = served.names() if body.model is None else [first]
    model = next((model for name in names if isinstance(model := served.get(name), Predicts | Estimates)), None)
    single = isinstance(body.inputs, str) or isinstance(body.inputs[0], str)
    inputs: Any = [body.inputs] if single else body.inputs
    texts: list[Any] = [
        each if isinstance(each, str) else each[0] if len(each) == 1 else tuple(each) for each in inputs
    ]
    check_count(texts, request.app.state.settings.inputs)
    truncated = count_truncated(model, texts, request.app.state.settings.on_long(body.truncate))
    options: dict[str, Any] = {"report": Nothing()} if truncated else {}  # the response header reports it
    results: list[list[dict[str, Any]]]
    if isinstance(model, Predicts):
        labels = len(model.labels) if isinstance(model, HasLabels) else 1
        rows = model.predict(texts, k=max(1, labels), **options)
        results = [[{"label": label, "score": score} for label, score in row] for row in rows]
    elif model is not None:
        results = [[{"label": "value", "score": float(value)}] for value in model.estimate(texts, **options)]
    else:
        raise RequestError(
            400,
            f"None of these models can predict: {', '.join(names)}. Use a text_classifier or fasttext_classifier.",
            field="model",
        )
    return json_response(to_json(results[0] if single else results), truncated)


def count_truncated(model: object, texts: list[Any], long: str) -> int:
    """Return how many texts or pairs exceed the model's maximum length; `long` may refuse them."""
    if not isinstance(model, FineTuned) or not isinstance(model, HasSubwordTokenizer):
        return 0
    parts = [[text] if isinstance(text, str) else list(text) for text in texts]
    ids = iter(model.tokenizer.ids_batch([part for each in parts for part in each], special=False))
    template = model.tokenizer.training_template
    added = {1: template.added, 2: template.added_to_pair}
    counts = [added[len(each)] + sum(len(next(ids)) for _ in each) for each in parts]
    return len(over_limit(model.max_length, counts, long))


@router.get("/health", responses={200: {"model": dict[str, str]}, **error_responses(503)})
async def health(request: Request) -> Response:
    """Return 200 while the server accepts requests, and 503 while it is stopping."""
    if request.app.state.stopping:
        raise RequestError(503, "The server is stopping.", kind="unavailable")
    return JSONResponse({"status": "ok"})


@router.get("/info", responses={200: {"model": dict[str, Any]}})
async def info(request: Request) -> Response:
    """Return the limits of the server, and its models and indexes."""
    settings: Settings = request.app.state.settings
    served: Models = request.app.state.models
    names = served.names()
    description = {
        "model_id": names[0] if names else None,
        "models": names,
        "indexes": served.index_names(),
        "loaded": served.loaded(),
        "version": __version__,
        "max_batch_tokens": settings.batch_tokens,
        "max_client_batch_size": settings.inputs,
        "max_concurrent_requests": settings.connections,
        "max_body_bytes": settings.body_bytes,
        "auto_truncate": settings.long == TRUNCATE,
    }
    return JSONResponse(description)
