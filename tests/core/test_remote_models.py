"""Models and indexes at URLs: saved, fetched, replaced while they are fetched, interrupted while they are saved."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses
from stores import Request, Server, Store
from tiny import tiny_bert

import firth
from firth.core import remote_folders
from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError
from firth.core.remote import RemotePath
from firth.core.saved import read_config
from firth.data.cache import cache_folder
from firth.words.word_model import WordModel

SENTENCES = ["the king sleeps", "the queen wakes", "a king and a queen"] * 20


def words(seed: int, dim: int = 8) -> WordModel:
    method = firth.SkipGram(dim=dim, min_count=1, epochs=1)
    return method.fit(SENTENCES, firth.Run(seed=seed, threads=1))


@pytest.fixture(scope="module")
def models() -> list[WordModel]:
    """An old and a new model whose files have the same sizes."""
    return [words(1), words(2)]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_folders, "WAIT", 0.01)


def matrix(model: Any) -> Any:
    return np.array(model.vectors.matrix)


def embedded(url: str, texts: list[str]) -> Any:
    model = firth.load(url)
    assert isinstance(model, EmbedsTexts)
    return model.embed(texts)


def test_a_model_is_saved_and_loaded(store: Store, models: list[WordModel], tmp_path: Path) -> None:
    url = f"{store.url}/models/words"
    assert str(models[0].save(url)) == url
    models[0].save(tmp_path / "here")
    files = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert store.names() == [f"models/words/{name}" for name in files]
    assert store.get("models/words/vectors.safetensors") == (tmp_path / "here" / "vectors.safetensors").read_bytes()
    model = firth.load(url, firth.SkipGram)
    assert np.array_equal(matrix(model), matrix(models[0]))
    assert set(firth.verify(url)) == set(read_config(tmp_path / "here")["files"])


def test_the_manifest_is_written_last(bucket: Store, models: list[WordModel], s3_server: Server) -> None:
    models[0].save(f"{bucket.url}/words")
    written = [request.path.rpartition("/")[2] for request in s3_server.requests if request.verb in ("PUT", "POST")]
    named = list(dict.fromkeys(reversed([name for name in written if not name.startswith(".firth")])))
    assert named[0] == "config.json" and "vectors.safetensors" in named


def test_a_model_is_fetched_once(bucket: Store, models: list[WordModel], s3_server: Server) -> None:
    url = str(models[0].save(f"{bucket.url}/words"))
    firth.load(url)
    s3_server.requests.clear()
    firth.load(url)
    assert not [each for each in s3_server.requests if each.verb == "GET" and each.path.endswith(".safetensors")]
    models[1].save(url, overwrite=True)
    assert np.array_equal(matrix(firth.load(url)), matrix(models[1]))


def test_a_model_that_exists_is_not_replaced_unasked(store: Store, models: list[WordModel]) -> None:
    url = str(models[0].save(f"{store.url}/words"))
    with refuses("output_exists", folder=url):
        models[1].save(url)
    store.put("words/maps/old.safetensors", "a map of the old vectors")
    store.put("words/mine.txt", "a file of the user")
    models[1].save(url, overwrite=True)
    assert np.array_equal(matrix(firth.load(url)), matrix(models[1]))
    assert "words/mine.txt" in store.names() and "words/maps/old.safetensors" not in store.names()


@pytest.mark.parametrize("moment", ["config.json", "vectors.safetensors"])
@pytest.mark.parametrize("verb", ["GET", "HEAD"])
def test_a_model_replaced_while_it_is_fetched(
    bucket: Store, models: list[WordModel], s3_server: Server, moment: str, verb: str, monkeypatch: Any
) -> None:
    """It is the old or the new one, at whatever request the replacement happens."""
    url = str(models[0].save(f"{bucket.url}/words"))
    seen = threading.Event()

    def replace(request: Request) -> None:
        if request.verb == verb and request.path.endswith(moment) and not seen.is_set():
            seen.set()
            models[1].save(url, overwrite=True)

    monkeypatch.setattr(s3_server, "before", replace)
    model = firth.load(url)
    assert seen.is_set()
    assert matrix(model).tobytes() in [matrix(each).tobytes() for each in models]
    for folder in cache_folder().glob("*/words"):
        files = json.loads((folder / "config.json").read_bytes())["files"]
        for name, entry in files.items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == entry["sha256"]


def test_a_model_between_two_versions_is_waited_for(
    bucket: Store, models: list[WordModel], s3_server: Server, monkeypatch: Any, tmp_path: Path
) -> None:
    """The weights are new and config.json is not yet: the reader waits for the rest of the upload."""
    url = str(models[0].save(f"{bucket.url}/words"))
    models[1].save(tmp_path / "new")
    bucket.put("words/vectors.safetensors", (tmp_path / "new" / "vectors.safetensors").read_bytes())
    rounds: list[float] = []

    def wait(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 3:
            bucket.put_folder(tmp_path / "new", "words")

    monkeypatch.setattr("firth.core.remote_folders.time.sleep", wait)
    assert np.array_equal(matrix(firth.load(url)), matrix(models[1]))
    assert len(rounds) == 3


def test_an_interrupted_upload_is_reported(
    bucket: Store, models: list[WordModel], s3_server: Server, tmp_path: Path
) -> None:
    """The server refuses config.json of the new model: the old config.json does not fit the new weights."""
    url = str(models[0].save(f"{bucket.url}/words"))

    def denied(request: Request) -> bool:
        return request.verb in ("PUT", "POST") and request.path.endswith("words/config.json")

    with s3_server.denying(denied), refuses("unwritable_file", path=f"{url}/config.json"):
        models[1].save(url, overwrite=True)
    with refuses("hash_mismatch"):
        firth.load(url)
    models[1].save(url, overwrite=True)  # repeated
    assert np.array_equal(matrix(firth.load(url)), matrix(models[1]))


def test_damage_is_found_when_a_model_is_fetched(store: Store, models: list[WordModel]) -> None:
    url = str(models[0].save(f"{store.url}/words"))
    damaged = bytearray(store.get("words/vectors.safetensors"))
    damaged[-1] ^= 1
    store.put("words/vectors.safetensors", bytes(damaged))
    with refuses("hash_mismatch", path=f"{url}/vectors.safetensors"):
        firth.load(url)


def test_errors_name_the_url_and_not_the_copy(store: Store, models: list[WordModel], tmp_path: Path) -> None:
    models[0].save(tmp_path / "here")
    config = json.loads((tmp_path / "here" / "config.json").read_text())
    (tmp_path / "here" / "config.json").write_text(json.dumps({**config, "format": 99}))
    url = store.put_folder(tmp_path / "here", "words")
    with refuses("unsupported_format", folder=url) as caught:
        firth.load(url)
    assert url in str(caught.value) and str(cache_folder()) not in str(caught.value)


def test_models_with_folders_and_of_other_libraries(store: Store, tmp_path: Path) -> None:
    """A BERT has files in folders; without Firth's keys it is a model of Hugging Face, which has no hashes."""
    bert = tiny_bert()
    url = str(bert.save(f"{store.url}/bert"))
    texts = ["the king sleeps", "a queen"]
    assert np.array_equal(embedded(url, texts), bert.embed(texts))
    bert.save(tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    own = ("format", "firth", "method", "options", "files")
    foreign = {name: value for name, value in config.items() if name not in own}
    (tmp_path / "bert" / "config.json").write_text(json.dumps(foreign))
    url = store.put_folder(tmp_path / "bert", "foreign")
    assert np.allclose(embedded(url, texts), bert.embed(texts), atol=1e-6)


def test_tokenizers_and_exports(store: Store) -> None:
    from firth.data.subword_tokenizer import SubwordTokenizer

    tokenizer = tiny_bert().tokenizer
    for name in ("tokenizer.json", "vocab.txt", "folder"):
        tokenizer.save(f"{store.url}/t/{name}")
        assert SubwordTokenizer.load(f"{store.url}/t/{name}").ids == tokenizer.ids


def test_training_to_a_url(bucket: Store) -> None:
    url, method = f"{bucket.url}/trained", firth.SkipGram(dim=8, min_count=1, epochs=1)
    with refuses("conflicting_options", folder=url):
        firth.train(method, firth.Corpus(SENTENCES), url)
    assert bucket.names() == []
    run = firth.Run(threads=1, deterministic=True, checkpoint_every=0)
    text = bucket.put("text.txt", "\n".join(SENTENCES))
    trained = firth.train(method, firth.Corpus(text), url, run=run)
    assert (trained.status, str(trained.folder)) == ("trained", url)
    assert np.array_equal(matrix(firth.load(url)), matrix(method.fit(firth.Corpus(SENTENCES), run)))
    assert firth.train(method, firth.Corpus(text), url, run=run).status == "already finished"
    with refuses("other_run", folder=url):
        firth.train(firth.SkipGram(dim=9, min_count=1), firth.Corpus(text), url, run=run)


def test_an_index_is_read_at_a_url(store: Store, models: list[WordModel], tmp_path: Path) -> None:
    from firth.index import Index

    here = Index.of(models[0].vectors, tmp_path / "index")
    url = store.put_folder(tmp_path / "index", "index")
    there = Index.open(url)
    query = models[0].vectors.matrix[0]
    assert [hit.key for hit in there.search(query, 3)] == [hit.key for hit in here.search(query, 3)]
    with refuses("unsafe_output", url=url):
        there.add(["new"], query[None])
    with refuses("unsafe_output", url=f"{store.url}/other"):
        Index.create(f"{store.url}/other", dim=8)


def test_writers_and_readers_at_the_same_time(bucket: Store, models: list[WordModel]) -> None:
    """Each load gives one of the two models, or says that the folder is being replaced."""
    url = str(models[0].save(f"{bucket.url}/words"))
    known, stop, failures = [matrix(each).tobytes() for each in models], threading.Event(), list[FirthError]()

    def write() -> None:
        try:
            for number in range(8):
                models[number % 2].save(url, overwrite=True)
        except FirthError as error:
            failures.append(error)
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    loads = 0
    while not stop.is_set() or not loads:
        with contextlib.suppress(FirthError):  # replaced again and again
            assert matrix(firth.load(url)).tobytes() in known
            loads += 1
    writer.join()
    assert not failures and matrix(firth.load(url)).tobytes() == known[1]


def test_ctrl_c_during_an_upload_leaves_the_old_file(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() >= 4:
                raise KeyboardInterrupt
            return super().read(4)

    class Local:
        def open(self, mode: str) -> io.BytesIO:
            return Interrupted(b"new content")

    url = bucket.put("a.txt", "old content")
    with pytest.raises(KeyboardInterrupt):
        RemotePath(url).upload(Local())  # type: ignore[arg-type]
    gc.collect()
    assert bucket.get("a.txt") == b"old content"


def test_two_models_are_served_from_urls(bucket: Store, models: list[WordModel]) -> None:
    from firth.server.models import parse_paths

    urls = [str(model.save(f"{bucket.url}/{name}/words")) for name, model in zip("ab", models, strict=True)]
    opened, _ = parse_paths([urls[0], f"other={urls[1]}"])
    assert {name: matrix(firth.load(path)).tobytes() for name, path in opened.items()} == {
        "words": matrix(models[0]).tobytes(),
        "other": matrix(models[1]).tobytes(),
    }
