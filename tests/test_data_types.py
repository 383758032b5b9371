"""A new type of data is one class: this file defines one and a method that reads it, which nothing else knows of."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import test_contract
from click.testing import CliRunner
from samples import SAMPLES, Sample
from serving import serving

import firth
from firth.cli.main import cli
from firth.core import registry
from firth.core.errors import FirthError
from firth.core.model import Parts
from firth.server.workbench import training

NAME = "sensor_means"


class Recordings(firth.Data):
    """Sensors and what they recorded: a table with one recording per row."""

    noun = "set of recordings"
    file_options = (
        firth.FileOption("sensor", "The sensor column."),
        firth.FileOption("readings", "The columns of readings.", "columns", empty="all others"),
        firth.FileOption("signed", "Readings are taken without their sign.", "flag", flag="unsigned"),
        firth.FileOption("scale", "How readings are scaled.", "choice", ("linear", "squared")),
    )

    def __init__(
        self,
        source: Any,
        *,
        sensor: str = "sensor",
        readings: list[str] | None = None,
        signed: bool = True,
        scale: str = "linear",
    ) -> None:
        self.table = firth.Table(source, categories=[sensor])
        self.sensors = self.table.categories(sensor)
        names = readings or [name for name in self.table.names if name != sensor]
        numbers = np.array([self.table.numbers(name) for name in names], np.float32).T  # (rows, readings)
        numbers = numbers if signed else np.abs(numbers)
        self.numbers = numbers if scale == "linear" else numbers**2

    def fingerprint(self) -> str:
        return self.table.fingerprint()


class SensorModel(firth.Model):
    """One vector per sensor."""

    def __init__(self, method: firth.Method, vectors: firth.Vectors, training: Mapping[str, Any]) -> None:
        self.method, self.vectors, self.training = method, vectors, training

    @property
    def tables(self) -> Mapping[str, firth.Vectors]:
        return {"sensors": self.vectors}

    def parts(self) -> Parts:
        return Parts({"sensors": self.vectors.matrix}, {"sensors": list(self.vectors.keys)})

    @classmethod
    def from_parts(cls, method: firth.Method, parts: Parts, training: Mapping[str, Any]) -> SensorModel:
        return cls(method, firth.Vectors(parts.documents["sensors"], parts.arrays["sensors"]), training)


@dataclass(frozen=True, kw_only=True)
class SensorMeans(firth.Method):
    """The mean recording of each sensor."""

    limits: ClassVar[tuple[str, ...]] = ("Sensors without recordings have no vector.",)
    model: ClassVar[type[firth.Model]] = SensorModel
    summary: ClassVar[str] = "the mean recording of each sensor"
    data = Recordings
    power: float = firth.option(1.0, "means are multiplied by it", low=0)

    def fit(self, data: Any, run: firth.Run = firth.Run(), start: firth.Model | None = None) -> SensorModel:
        if start is not None:
            raise FirthError("unsupported_start", "{method} cannot continue from a model.", method="SensorMeans")
        if not len(data.sensors):
            raise FirthError("empty_data", "There are no recordings.")
        rows = {sensor: np.flatnonzero(np.array(data.sensors) == sensor) for sensor in dict.fromkeys(data.sensors)}
        means = np.stack([self.power * data.numbers[which].mean(axis=0) for which in rows.values()])
        return SensorModel(self, firth.Vectors(list(rows), means), {"rows": len(data.sensors)})


COLUMNS = {"sensor": ["a", "b", "a"], "x": [1.0, -2.0, 3.0], "y": [0.0, -4.0, 2.0]}
#: The contract of every method.
CONTRACT = {
    name: test
    for name, test in vars(test_contract).items()
    if test_contract.every_method.mark in getattr(test, "pytestmark", ())
}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    classes = {**registry.method_classes(), NAME: f"{__name__}:SensorMeans"}
    monkeypatch.setattr(registry, "method_classes", lambda: classes)
    nothing: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    sample = Sample("", lambda: Recordings(COLUMNS), lambda: Recordings(nothing))
    samples: dict[Any, Any] = SAMPLES
    monkeypatch.setitem(samples, Recordings, sample)
    training.forms.cache_clear()
    yield
    training.forms.cache_clear()


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    path = tmp_path / "recordings.csv"
    rows = zip(*COLUMNS.values(), strict=True)
    path.write_text("\n".join(["device,x,y", *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.mark.parametrize("name", CONTRACT)
def test_it_passes_the_contract(name: str, tmp_path: Path) -> None:
    fixtures = {"method": SensorMeans, "tmp_path": tmp_path}
    test = CONTRACT[name]
    assert test(**{parameter: fixtures[parameter] for parameter in inspect.signature(test).parameters}) is None


def test_its_options_are_flags_of_the_command(recordings: Path, tmp_path: Path) -> None:
    help = CliRunner().invoke(cli, ["train", NAME, "--help"], terminal_width=200).output
    for flag, text in (
        ("--sensor NAME", "The sensor column.  [default: sensor]"),
        ("--readings NAMES", "The columns of readings."),
        ("--unsigned", "Readings are taken without their sign."),
        ("--scale [linear|squared]", "How readings are scaled.  [default: linear]"),
    ):
        assert any(flag in line and text in line for line in help.splitlines()), help
    flags = ["--sensor", "device", "--readings", "y,x", "--unsigned", "--scale", "squared"]
    trained = CliRunner().invoke(cli, ["train", NAME, str(recordings), "-o", str(tmp_path / "model"), *flags])
    assert trained.exit_code == 0, trained.output
    assert f"firth query neighbors {tmp_path / 'model'} SENSOR" in trained.stdout
    model: Any = firth.load(tmp_path / "model")
    assert model.vectors["a"].tolist() == [2.0, 5.0] and model.vectors["b"].tolist() == [16.0, 4.0]
    several = ["train", NAME, str(recordings), str(recordings), "-o", str(tmp_path / "other"), "--json"]
    refused = CliRunner().invoke(cli, several)
    error = json.loads(refused.stderr.splitlines()[-1])["error"]
    assert (error["code"], error["values"]["detail"]) == ("wrong_input", "set of recordings")


def test_the_workbench_has_its_form(recordings: Path, tmp_path: Path) -> None:
    with serving(root=tmp_path) as client:
        client.headers["X-Firth-Token"] = client.settings.token
        (form,) = [each for each in client.get("/api/methods").json()["methods"] if each["name"] == NAME]
        body = training.TrainBody(
            method=NAME, name="m", source="root/recordings.csv", data={"sensor": "device", "unsigned": True}
        )
        command = training.arguments(client.app.state.workspace, body)
    assert form["data"] == {"module": __name__, "class": "Recordings"}
    assert [(field["name"], field["keyword"], field["role"]) for field in form["fields"]] == [
        ("sensor", "sensor", "column"),
        ("readings", "readings", "columns"),
        ("unsigned", "signed", "flag"),
        ("scale", "scale", "choice"),
    ]
    sensor, readings, unsigned, scale = form["fields"]
    assert sensor["needed"] and sensor["default"] == "sensor" and readings["empty"] == "all others"
    assert unsigned["default"] is True and scale["choices"] == ["linear", "squared"]
    assert command == ["train", NAME, str(recordings), "--sensor=device", "--unsigned"]


def test_other_commands_refuse_what_only_texts_have(recordings: Path, tmp_path: Path) -> None:
    SensorMeans().fit(Recordings(recordings, sensor="device")).save(tmp_path / "model")
    model = str(tmp_path / "model")
    embed = ["embed", model, str(recordings), "-o", str(tmp_path / "rows.npy")]
    for command in (embed, ["query", "similarity", model, "a", "b", "--texts"]):
        refused = CliRunner().invoke(cli, [*command, "--json"])
        assert json.loads(refused.stderr.splitlines()[-1])["error"]["code"] == "unsupported_model"
    compared = firth.compare({"one": tmp_path / "model", "two": SensorMeans(power=2.0).fit(Recordings(COLUMNS))})
    assert set(compared.models) == {"one", "two"}
