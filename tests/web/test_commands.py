"""What Show me the command shows runs as it stands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Locator, expect
from web.bench import Open, settled

import firth
from firth.cli.main import cli


@pytest.mark.parametrize(
    "where",
    [
        "",
        "neighbors?model=words&word=king&metric=dot",
        "neighbors?model=films&table=users&word=u1",
        "map?of=model/films/users&point=u1",
        "attention?model=gpt&text=it's+the+king",
        "attention?model=bert&text=the+king&other=a+queen",
        "senses?model=minilm",
        "words?kind=fill",
        "words?kind=write&prompt=the+king",
        "words?kind=answer",
        "latent?model=people&at=0.1,0.2,-0.3",
    ],
)
def test_the_shown_commands_run(
    view: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    page = view(where)
    settled(page)
    monkeypatch.chdir(tmp_path)
    for button in page.get_by_role("button", name="Show me the command").all():
        button.click()
        panel = page.get_by_role("tabpanel")
        expect(panel).not_to_contain_text("MODEL")  # before the models are known
        for line in panel.inner_text().splitlines():
            program, *arguments = shlex.split(line)
            done = CliRunner().invoke(cli, arguments)
            assert program == "firth" and done.exit_code == 0 and done.output, done.output
        page.get_by_role("tab", name="Python").click()
        exec(compile(panel.inner_text(), "shown", "exec"), {})
        assert capsys.readouterr().out.strip()
        button.click()


def test_no_command_is_shown_where_none_does_the_same(view: Open, open_page: Open, studio: Any) -> None:
    page = view("data?data=root%2Fpeople.csv")  # a table without texts
    expect(page.get_by_role("region", name="Rows")).to_be_visible()
    button = page.get_by_role("button", name="Show me the command")
    expect(button).to_have_count(0)
    page = view("train?data=root%2Fpeople.csv&method=text_classifier&d.column=city&d.label=age")
    expect(page.get_by_role("button", name="Start text_classifier")).to_be_visible()
    button = page.get_by_role("button", name="Show me the command")
    expect(button).to_have_count(0)
    page.get_by_label("Start from").select_option("bert")
    button.click()
    expect(page.get_by_role("tabpanel")).to_contain_text("firth finetune text_classifier")
    page = open_page(f"{studio.address}/#/map?of=index/tickets&point=T0001")
    page.get_by_role("button", name="Show me the command").click()
    expect(page.get_by_role("tab")).to_have_text(["Python"])
    expect(page.get_by_role("tabpanel")).to_contain_text('index.search(index["T0001"])')


def test_the_shown_search_and_index_do_the_same(
    open_page: Open, studio: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = open_page(
        f"{studio.address}/#/search?q=wrong+amount&k=4&mode=words&f.kind=billing&f.kind=login&f.year=2020.."
    )
    expect(page.locator(".hits > li")).to_have_count(4)
    keys = page.locator(".hits strong").all_inner_texts()
    page.get_by_role("button", name="Show me the command").click()
    panel = page.get_by_role("tabpanel")
    done = CliRunner().invoke(cli, shlex.split(panel.inner_text())[1:])
    assert done.exit_code == 0 and [line.split()[2] for line in done.output.splitlines()[1:]] == keys, done.output
    page = open_page(f"{studio.address}/#/search?model=lsa&data=root/tickets.csv&key=id&keep=year&keep=kind&as=new")
    page.get_by_role("button", name="New index").click()
    page.get_by_role("region", name="Create an index").get_by_role("button", name="Show me the command").click()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("--key=id --attributes=year,kind -o new")
    run_both(panel, tmp_path, monkeypatch)
    one, other = (firth.Index.open(tmp_path / folder / "new") for folder in ("shell", "python"))
    assert one.columns == other.columns and len(one) == len(other) == 600
    for key in keys:
        assert one[key].tolist() == pytest.approx(other[key].tolist(), abs=1e-6)


def test_the_shown_training_runs(view: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = view("train?data=root%2Fpeople.csv&method=pca&d.columns=age,pay&o.pca.dim=1&r.seed=3")
    page.get_by_role("button", name="Show me the command").click()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("people.csv --columns=age,pay --dim=1 --seed=3 -o people-pca")
    run_both(panel, tmp_path, monkeypatch)
    expect(panel).to_contain_text("run=firth.Run(seed=3)")
    one, other = (firth.load(tmp_path / folder / "people-pca") for folder in ("shell", "python"))
    assert one.method == other.method == firth.PCA(dim=1)


def run_both(panel: Locator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown, in the folder `shell` as a command and in `python` as Python."""
    for folder in ("shell", "python"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "shell")
    done = CliRunner().invoke(cli, shlex.split(panel.inner_text())[1:])
    assert done.exit_code == 0, done.output
    panel.page.get_by_role("tab", name="Python").click()
    monkeypatch.chdir(tmp_path / "python")
    exec(compile(panel.inner_text(), "shown", "exec"), {})
