"""torchrun: commands that use several processes do everything once; the other commands are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from samples import write_samples
from tiny import tiny_bert

import firth
from firth.cli.main import DISTRIBUTED, cli
from firth.core import registry
from firth.data.world import World

SENTENCES = list(World(seed=4).sentences(400))


#: A program that trains the methods of its arguments.
TRAIN_ALL = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from samples import sample_of, small, training_command
from firth.cli.main import cli
from firth.core import registry
for name in sys.argv[1:]:
    command = training_command(name, sample_of(registry.method(name)).file, "base")
    command += ["-o", f"model-{{name}}", "--device", "cpu", *small(name)]
    cli([*command, "--json"], "firth", standalone_mode=False)
"""
TOGETHER = [name for name in sorted(registry.method_classes()) if registry.method(name).in_processes]


def torchrun(
    folder: Path, *words: Any, processes: int = 2, program: Sequence[str] = ("-m", "firth"), **settings: Any
) -> subprocess.Popen[str]:
    """`torchrun --nproc-per-node=2 -m firth WORDS…` in a folder."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "FIRTH_CACHE": str(folder / "cache")}
    settings = {"cwd": folder, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen([*command, *program, *map(str, words)], text=True, **settings)


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def shard_rows(folder: Path) -> pyarrow.Table:
    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in sorted(folder.glob("part-*"))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """texts.txt with two odd lines, a BERT, and the rows that one process makes of them."""
    made = tmp_path_factory.mktemp("processes")
    lines = [*SENTENCES, "", "king " * 300]
    (made / "texts.txt").write_text("\n".join(lines) + "\n")
    tiny_bert().save(made / "bert")
    return made


def test_texts_are_embedded_once(folder, call, monkeypatch):
    monkeypatch.chdir(folder)
    command = ("embed", "bert", "texts.txt", "--device", "cpu", "--shard-rows", 90, "--json")
    alone = call(*command, "-o", "alone")
    assert alone.exit_code == 0, alone.output
    status, out, err = finished(torchrun(folder, *command, "-o", "shared"))
    assert status == 0, err[-2000:]
    assert json.loads(out) == {**json.loads(alone.stdout), "output": "shared"}  # one line: one process prints
    assert err.count('"empty_texts"') == err.count('"cut_texts"') == 1
    files = [sorted(path.name for path in (folder / name).iterdir()) for name in ("alone", "shared")]
    assert files[0] == files[1] == ["embedding.json", *(f"part-{n:05d}.parquet" for n in range(5))]
    assert shard_rows(folder / "shared").equals(shard_rows(folder / "alone"))
    records = [json.loads((folder / name / "embedding.json").read_text()) for name in ("alone", "shared")]
    assert records[0] == records[1] and records[1]["finished"] == 402


#: `firth` that writes a line for every shard that it embeds.
SHARDS_ON_RECORD = """
import functools, json, os
from pathlib import Path
from firth.cli import embed_job
from firth.cli.main import main
embed_shard = embed_job.embed_shard
@functools.wraps(embed_shard)
def recorded(common, parameters, folder):
    with Path("embedded-by-" + os.environ["RANK"]).open("a") as file:
        file.write(json.dumps(parameters, sort_keys=True) + chr(10))
    return embed_shard(common, parameters, folder)
embed_job.embed_shard = recorded
main()
"""


def test_every_process_embeds_its_own_shards(folder, tmp_path):
    """Embedding a shard twice gives the same files, so only the work shows it."""
    (tmp_path / "record.py").write_text(SHARDS_ON_RECORD)
    command = ("embed", folder / "bert", folder / "texts.txt", "--device", "cpu", "--shard-rows", 90, "-o", "shared")
    status, _, err = finished(torchrun(tmp_path, *command, program=("record.py",)))
    assert status == 0, err[-2000:]
    embedded = [(tmp_path / f"embedded-by-{rank}").read_text().splitlines() for rank in (0, 1)]
    assert [len(lines) for lines in embedded] == [3, 2] and len({*embedded[0], *embedded[1]}) == 5


def test_an_interrupted_run_resumes_with_another_number_of_processes(folder, call, monkeypatch):
    """Killed with two processes, finished with three: finished shards are kept, and none is missing."""
    monkeypatch.chdir(folder)
    many = pyarrow.table({"text": [f"{text} {n}" for n in range(30) for text in SENTENCES]})
    pyarrow.parquet.write_table(many, folder / "many.parquet")
    command = ("embed", "bert", "many.parquet", "--device", "cpu", "--shard-rows", 200)
    process = torchrun(folder, *command, "-o", "broken")
    end = time.monotonic() + 120
    while len(recorded(folder / "broken")) < 5 and time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    for worker in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        os.kill(int(worker), signal.SIGKILL)
    process.communicate()
    parts = {name: moment for name, moment in times(folder / "broken").items() if name in recorded(folder / "broken")}
    assert 5 <= len(parts) < 60
    status, out, err = finished(torchrun(folder, *command, "-o", "broken", processes=3))
    assert status == 0 and "12,000 rows" in out and f"note: {len(parts)} shards are already finished" in err
    assert parts.items() <= times(folder / "broken").items()
    names = sorted(path.name for path in (folder / "broken").iterdir())
    assert names == ["embedding.json", *(f"part-{n:05d}.parquet" for n in range(60))]
    assert call(*command, "-o", "whole").exit_code == 0
    assert shard_rows(folder / "broken").equals(shard_rows(folder / "whole"))


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}


def recorded(folder: Path) -> set[str]:
    """The shards that are recorded as finished."""
    return {f"part-{path.stem}.parquet" for path in (folder / ".shards").glob("*.json")}


def test_an_unsafe_folder_is_reported_once(folder):
    (folder / "other").mkdir()
    (folder / "other" / "letter.txt").write_text("mine")
    status, out, err = finished(torchrun(folder, "embed", "bert", "texts.txt", "-o", "other", "--json"))
    errors = [json.loads(line)["error"] for line in err.splitlines() if line.startswith('{"error"')]
    assert status == 1 and out == "" and [error["code"] for error in errors] == ["unsafe_output"]
    assert [path.name for path in (folder / "other").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("output", [["-o", "rows.npy"], ["-o", "rows.jsonl"], []])
def test_one_file_is_not_written_by_two_processes(call, folder, monkeypatch, output):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert refused(call("embed", "bert", "texts.txt", *output, "--json"))["processes"] == 2
    assert not list(folder.glob("rows*"))


def refused(result: Any) -> dict[str, Any]:
    """The values of the error."""
    assert result.exit_code == 1 and result.stdout == "", result.output
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "conflicting_options"
    return dict(error["values"])


@pytest.mark.parametrize("verb", [verb for verb in cli.summaries if verb not in DISTRIBUTED])
def test_commands_of_one_process_are_refused(call, monkeypatch, verb):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert refused(call(verb, "no-such", "--json")) == {"what": f"firth {verb}", "processes": 2}


def test_a_world_size_of_one_or_no_number_is_ignored(call, monkeypatch):
    for size in ("1", "", "many"):
        monkeypatch.setenv("WORLD_SIZE", size)
        assert call("methods").exit_code == 0


def test_networks_train_together(tmp_path):
    """Every network method in the same two processes, of which one prints and writes."""
    write_samples(tmp_path)
    program = tmp_path / "train_all.py"
    program.write_text(TRAIN_ALL)
    process = torchrun(tmp_path, *TOGETHER, program=[str(program)])
    status, out, err = finished(process)
    assert status == 0, err[-3000:]
    results = [json.loads(line) for line in out.splitlines()]
    assert [each["method"] for each in results] == TOGETHER and {each["status"] for each in results} == {"trained"}
    for name in TOGETHER:
        model = firth.load(tmp_path / f"model-{name}")
        assert type(model.method).method_name() == name and model.training["steps"] > 0
        assert not (tmp_path / f"model-{name}" / ".unfinished").exists()
