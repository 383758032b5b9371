"""Commands whose inputs and outputs are URLs, on a real S3 server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from samples import SAMPLES, small, training_command, write_samples
from stores import Server, Store

import firth
from firth.core import registry
from firth.core.remote import RemotePath


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def models(files: Path) -> dict[str, Path]:
    """A model of words, of labels and of table rows."""
    run, made = firth.Run(threads=1, checkpoint_every=0), dict[str, Path]()
    data: dict[str, Any] = {
        "skipgram": firth.Corpus(str(files / "text.txt")),
        "pca": firth.Table(str(files / "table.csv")),
        "fasttext_classifier": firth.LabeledTexts(str(files / "topics.txt")),
    }
    for name, read in data.items():
        options = {"dim": 4} if name == "pca" else {"dim": 8, "epochs": 1, "min_count": 1}
        registry.method(name)(**options).fit(read, run).save(files / "models" / name)
        made[name] = files / "models" / name
    return made


def run(call: Any, *arguments: Any, input: str | None = None) -> Any:
    """The output of a command that succeeds, here and in the working directory nothing is written."""
    result = call(*arguments, input=input)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The working directory stays empty: no folder is named "s3:"."""
    folder = tmp_path / "working"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield folder
    assert list(folder.iterdir()) == []


#: A quick method for each type of data.
METHODS = {
    "Corpus": "skipgram",
    "TaggedCorpus": "doc2vec",
    "LabeledTexts": "fasttext_classifier",
    "Graph": "deepwalk",
    "Interactions": "als",
    "Table": "pca",
    "TranslationPairs": "seq2seq",
    "Questions": "question_answerer",
    "TaggedSentences": "token_classifier",
    "Examples": "linear_classifier",
    "SimilarPairs": "sentence_encoder",
}


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: str(kind.__name__))
def test_a_model_is_trained_from_a_url_into_a_url(bucket: Store, call: Any, files: Path, kind: Any) -> None:
    name = METHODS[kind.__name__]
    data = files / SAMPLES[kind].file
    url = bucket.put(f"data/{data.name}", data.read_bytes())
    base = bucket.put_folder(files / "base", "base") if registry.method(name).needs_start else None
    more = ["--deterministic"] if name == "skipgram" else []
    options = [*small(name), "--checkpoint-every", 0, *more]
    run(call, *training_command(name, url, base), "-o", f"{bucket.url}/model", *options)
    model = firth.load(f"{bucket.url}/model")
    assert type(model.method).method_name() == name
    if name == "skipgram":
        run(call, *training_command(name, data, None), "-o", files / "here", *options)
        assert bucket.get("model/vectors.safetensors") == (files / "here" / "vectors.safetensors").read_bytes()


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".jsonl"])
def test_embed_to_one_file(
    bucket: Store, call: Any, files: Path, models: dict[str, Path], tmp_path: Path, suffix: str
) -> None:
    here = tmp_path / f"rows{suffix}"
    run(call, "embed", models["skipgram"], files / "text.txt", "-o", here)
    bucket.put("docs/a.txt", (files / "text.txt").read_bytes())
    model = bucket.put_folder(models["skipgram"], "model")
    out = f"{bucket.url}/out/rows{suffix}"
    printed = run(call, "embed", model, f"{bucket.url}/docs/*.txt", "-o", out, "--json")
    assert json.loads(printed)["output"] == out
    assert bucket.get(f"out/rows{suffix}") == here.read_bytes()
    if suffix == ".npy":
        assert bucket.get("out/rows.keys.json") == (tmp_path / "rows.keys.json").read_bytes()


def test_other_commands_that_read_models_and_data(
    bucket: Store, call: Any, files: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    """Each prints the same as with local paths."""
    there = {name: bucket.put_folder(path, f"models/{name}") for name, path in models.items()}
    data = {path.name: bucket.put(path.name, path.read_bytes()) for path in files.iterdir() if path.is_file()}
    (tmp_path / "questions.txt").write_text(": a\nking man queen woman\n")
    (tmp_path / "pairs.csv").write_text("a king,a queen,1\na man,a king,0.5\nthe queen,a man,0\n")
    data |= {name: bucket.put(name, (tmp_path / name).read_bytes()) for name in ("questions.txt", "pairs.csv")}
    local = {name: (tmp_path if (tmp_path / name).exists() else files) / name for name in data}
    word = firth.load(models["skipgram"]).vectors.keys[0]  # type: ignore[attr-defined]
    commands: list[list[Any]] = [
        ["query", "neighbors", models["skipgram"], word, "--json"],
        ["query", "similarity", models["skipgram"], word, word],
        ["predict", models["fasttext_classifier"], local["text.txt"], "--json"],
        ["evaluate", "analogies", models["skipgram"], local["questions.txt"]],
        ["evaluate", "sentences", models["skipgram"], local["pairs.csv"]],
        ["corpus", "info", local["text.txt"], "--json"],
        ["verify", models["skipgram"]],
    ]
    urls = {str(path): there[name] for name, path in models.items()}
    urls |= {str(path): data[name] for name, path in local.items()}
    for command in commands:
        expected = run(call, *command)
        for path, url in urls.items():
            expected = expected.replace(path, url)
        assert run(call, *(urls.get(str(part), part) for part in command)) == expected, command
    info = json.loads(run(call, "info", there["skipgram"], "--json"))
    assert info == {**json.loads(run(call, "info", models["skipgram"], "--json")), "path": there["skipgram"]}


def test_files_that_commands_write(
    bucket: Store, call: Any, models: dict[str, Path], files: Path, tmp_path: Path
) -> None:
    model, out = bucket.put_folder(models["skipgram"], "model"), f"{bucket.url}/out"
    run(call, "convert", model, f"{out}/words.vec")
    run(call, "convert", models["skipgram"], tmp_path / "words.vec")
    assert bucket.get("out/words.vec") == (tmp_path / "words.vec").read_bytes()
    assert run(call, "query", "neighbors", f"{out}/words.vec", "king") == run(call, "query", "neighbors", model, "king")
    run(call, "convert", models["skipgram"], f"{out}/copy")  # a model folder
    run(call, "convert", f"{out}/copy", tmp_path / "copy")
    assert firth.verify(tmp_path / "copy")["vectors.safetensors"] == firth.verify(model)["vectors.safetensors"]
    run(call, "plot", "map", model, "-o", f"{out}/map.svg", "-k", 5)
    assert b"<svg" in bucket.get("out/map.svg")
    run(call, "corpus", "world", "-o", f"{out}/world.txt", "--sentences", 20)
    assert bucket.get("out/world.txt").count(b"\n") == 20
    run(call, "tokenizer", "train", f"{out}/world.txt", "-o", f"{out}/bpe.json", "--size", 300)
    assert run(call, "tokenizer", "encode", f"{out}/bpe.json", input="the king").strip()
    table = bucket.put("table.csv", (files / "table.csv").read_bytes())
    pca = bucket.put_folder(models["pca"], "pca")
    run(call, "embed", pca, table, "-o", f"{out}/rows.parquet")
    with RemotePath(f"{out}/rows.parquet").open() as file:
        assert pyarrow.parquet.read_table(file).num_rows == 60


def test_an_index_is_searched_at_a_url(
    bucket: Store, call: Any, refused: Any, models: dict[str, Path], files: Path, tmp_path: Path
) -> None:
    text = bucket.put("text.txt", (files / "text.txt").read_bytes())
    run(call, "index", "build", models["skipgram"], text, "-o", tmp_path / "index")
    url = bucket.put_folder(tmp_path / "index", "index")
    assert run(call, "search", url, "king") == run(call, "search", tmp_path / "index", "king")
    assert json.loads(run(call, "info", url, "--json"))["kind"] == "index"
    run(call, "verify", url)
    model = bucket.put_folder(models["skipgram"], "model")
    refused("unsafe_output", "index", "build", model, text, "-o", f"{bucket.url}/new", url=f"{bucket.url}/new")
    run(call, "index", "build", model, text, "-o", tmp_path / "other")
    refused("missing_model", "search", tmp_path / "other", "king", path=model)  # no address that was not named
    run(call, "search", tmp_path / "other", "king", "--model", model)


def test_a_bucket_that_denies_writing(
    bucket: Store, s3_server: Server, refused: Any, models: dict[str, Path], files: Path
) -> None:
    """It is noticed before data are read, so that a data file that does not exist is not."""
    missing, out = f"{bucket.url}/missing.txt", f"{bucket.url}/out"
    with s3_server.denying(lambda request: request.verb in ("PUT", "POST", "DELETE")):
        for command in (
            ["embed", models["skipgram"], missing, "-o", f"{out}.npy"],
            ["train", "skipgram", missing, "-o", out, "--checkpoint-every", 0],
            ["tokenizer", "train", missing, "-o", f"{out}.json"],
            ["convert", models["skipgram"], f"{out}.vec"],
            ["plot", "map", models["skipgram"], "-o", f"{out}.svg"],
        ):
            refused("unwritable_file", *command)
    assert bucket.names() == []


def test_outputs_that_need_a_folder_here(
    bucket: Store, refused: Any, models: dict[str, Path], files: Path, empty_folder: Path
) -> None:
    text, out = files / "text.txt", f"{bucket.url}/out"
    refused("conflicting_options", "train", "skipgram", text, "-o", out, folder=out)
    refused("unsafe_output", "sweep", "skipgram", text, "-o", out, url=out)
    refused("unsafe_output", "demo", "-o", out, url=out)
    refused("output_is_input", "convert", f"{out}.vec", f"{out}.vec", path=f"{out}.vec")
    assert bucket.names() == []
