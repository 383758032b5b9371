"""`firth.train`: what counts as the same run, and what happens to a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.core.train import UNFINISHED, identity_of

METHOD = firth.SkipGram(dim=8, epochs=2, min_count=1)
RUN = firth.Run(deterministic=True)


@pytest.fixture
def corpus(tmp_path: Path) -> firth.Corpus:
    (tmp_path / "text.txt").write_text("the king and the queen met the cat and the dog\n" * 30)
    return firth.Corpus(tmp_path / "text.txt")


def test_trains_saves_and_does_not_train_again(corpus, tmp_path):
    first = firth.train(METHOD, corpus, tmp_path / "m", run=RUN)
    again = firth.train(METHOD, corpus, tmp_path / "m", run=RUN)
    assert (first.status, again.status) == ("trained", "already finished")
    assert np.array_equal(first.model.vectors.matrix, again.model.vectors.matrix)
    assert np.array_equal(first.model.vectors.matrix, METHOD.fit(corpus, RUN).vectors.matrix)
    assert firth.verify(tmp_path / "m") and not (tmp_path / "m" / UNFINISHED).exists()


def test_threads_and_report_do_not_make_another_run(corpus):
    same = identity_of(METHOD, corpus, RUN, None)
    assert identity_of(METHOD, corpus, replace(RUN, threads=1, checkpoint_every=1.0), None) == same
    changed = [
        identity_of(replace(METHOD, dim=9), corpus, RUN, None),
        identity_of(METHOD, firth.Corpus(["other text"]), RUN, None),
        identity_of(METHOD, corpus, replace(RUN, seed=2), None),
        identity_of(METHOD, corpus, replace(RUN, budget=5.0), None),
        identity_of(METHOD, corpus, RUN, METHOD.fit(corpus, RUN)),
        identity_of(METHOD, corpus, RUN, METHOD.fit(corpus, replace(RUN, seed=2))),
        identity_of(firth.CBOW(dim=8, epochs=2, min_count=1), corpus, RUN, None),
    ]
    texts = [json.dumps(identity) for identity in [same, *changed]]
    assert len(set(texts)) == len(texts)


def test_another_model_is_refused_unless_it_may_be_overwritten(corpus, tmp_path):
    other = replace(METHOD, window=2)
    firth.train(METHOD, corpus, tmp_path / "m", run=RUN)
    with refuses("other_run"):
        firth.train(other, corpus, tmp_path / "m", run=RUN)
    assert firth.train(other, corpus, tmp_path / "m", run=RUN, overwrite=True).status == "trained"
    assert firth.load(tmp_path / "m").method == other


def test_all_that_models_are_made_of_may_be_overwritten(corpus, tmp_path):
    firth.train(METHOD, corpus, tmp_path / "m", run=RUN)
    pooling = tmp_path / "m" / "1_Pooling"  # as a BERT has it
    pooling.mkdir()
    (pooling / "config.json").write_text("{}")
    (pooling / "mine.json").write_text("{}")
    with refuses("unsafe_output"):
        firth.train(METHOD, corpus, tmp_path / "m", run=RUN, overwrite=True)
    (pooling / "mine.json").unlink()
    assert firth.train(METHOD, corpus, tmp_path / "m", run=RUN, overwrite=True).status == "trained"
    assert not pooling.exists()


def test_data_that_cannot_be_compared_is_never_called_the_same(tmp_path):
    texts = ["one two three four"] * 20
    firth.train(METHOD, firth.Corpus(texts), tmp_path / "m", run=RUN)
    with refuses("other_run"):
        firth.train(METHOD, firth.Corpus(texts), tmp_path / "m", run=RUN)
    tokens = firth.data.tokens.read_tokens(firth.Corpus(texts), min_count=1)
    assert firth.train(METHOD, tokens, tmp_path / "t", run=RUN).status == "trained"
    assert firth.train(METHOD, tokens, tmp_path / "t", run=RUN).status == "already finished"


def test_a_model_saved_by_hand_is_another_model(corpus, tmp_path):
    METHOD.fit(corpus, RUN).save(tmp_path / "m")
    with refuses("other_run"):
        firth.train(METHOD, corpus, tmp_path / "m", run=RUN)


class Broken(firth.Method):
    """Fails while it learns, before or after a checkpoint."""

    summary = "fails"
    checkpoint = False

    def fit(self, data, run=RUN, start=None):
        if self.checkpoint:
            (run.checkpoint_folder / "checkpoint.json").write_text("{}")
        raise firth.FirthError("diverged", "out of luck")


def test_a_failure_leaves_nothing_but_its_checkpoint(corpus, tmp_path):
    with refuses("diverged"):
        firth.train(Broken(), corpus, tmp_path / "m", run=RUN)
    assert not (tmp_path / "m").exists()
    firth.train(METHOD, corpus, tmp_path / "m", run=RUN)
    with refuses("diverged"):
        firth.train(Broken(), corpus, tmp_path / "m", run=RUN, overwrite=True)
    assert firth.train(METHOD, corpus, tmp_path / "m", run=RUN).status == "already finished"
    assert not (tmp_path / "m" / UNFINISHED).exists()


def test_an_old_model_can_be_used_while_its_successor_is_unfinished(corpus, tmp_path, monkeypatch):
    firth.train(METHOD, corpus, tmp_path / "m", run=RUN)
    monkeypatch.setattr(Broken, "checkpoint", True)
    with refuses("diverged"):
        firth.train(Broken(), corpus, tmp_path / "m", run=RUN, overwrite=True)
    assert (tmp_path / "m" / UNFINISHED / "checkpoint.json").exists()
    assert firth.load(tmp_path / "m").method == METHOD and firth.verify(tmp_path / "m")
    with refuses("other_run"):
        firth.train(replace(METHOD, dim=9), corpus, tmp_path / "m", run=RUN)


def test_an_empty_folder_and_a_link_to_one_will_do(corpus, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    firth.train(METHOD, corpus, tmp_path / "link", run=RUN)
    assert (tmp_path / "link").is_symlink() and firth.load(tmp_path / "empty").method == METHOD
