"""The scikit-learn wrappers: all of scikit-learn's checks, pipelines and searches."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas
import polars
import pytest
from refusing import refuses
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

import firth
from firth.core.options import options_of
from firth.data.world import World
from firth.sklearn import (
    LSA,
    PCA,
    VAE,
    Autoencoder,
    Binary,
    Doc2Vec,
    Features,
    MinMax,
    OneHot,
    Ordinal,
    SkipGram,
    Standardize,
    TfIdf,
)

CLASSES = (OneHot, Ordinal, Binary, Standardize, MinMax, PCA)
# scikit-learn's checks come with numbers only: as categories they exercise the codes too.
CHECKED = [kind() for kind in CLASSES]
CHECKED += [kind(numeric="encode", unseen="missing") for kind in (OneHot, Ordinal, Binary)]
CHECKED += [Standardize(missing="error"), PCA(dim=1)]  # none has been made for texts
CHECKED += [kind(dim=1, epochs=2, hidden_sizes="4") for kind in (Autoencoder, VAE)]
FRAME = pandas.DataFrame({"color": ["red", "blue", "red", "green"], "age": [1.0, 2.0, 3.0, 6.0]})


def checks():
    """Return all of scikit-learn's checks but one, which it skips if array API dispatch is off."""
    for estimator in CHECKED:
        for _, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            if name != "check_array_api_input":
                yield pytest.param(estimator, check, id=f"{estimator}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check):
    check(clone(estimator))


@pytest.mark.parametrize(
    "kind", [*CLASSES, Autoencoder, VAE, TfIdf, LSA, SkipGram, Doc2Vec], ids=lambda kind: kind.__name__
)
def test_parameters_are_the_options(kind):
    options = options_of(getattr(firth, kind.__name__))
    assert kind().get_params() == {option.name: option.default for option in options}
    assert all(option.help in kind.__doc__ for option in options)
    changed = options[0].choices[-1] if options[0].choices else 1
    assert clone(kind().set_params(**{options[0].name: changed})).get_params()[options[0].name] == changed


def test_wrong_parameters_are_refused_by_fit():
    with refuses("invalid_value", method="OneHot", name="unseen", got="ignore"):
        OneHot(unseen="ignore").fit(FRAME)
    with pytest.raises(TypeError, match="no_such"):
        OneHot(no_such=1)


def test_data_frames_keep_names_and_types():
    encoder = OneHot(numeric="standardize").set_output(transform="pandas").fit(FRAME)
    found = encoder.transform(FRAME)
    assert list(found.columns) == ["color=red", "color=blue", "color=green", "age"] and found.index.equals(FRAME.index)
    np.testing.assert_allclose(found["age"], (FRAME["age"] - 3) / FRAME["age"].std(ddof=0))
    assert encoder.get_feature_names_out().tolist() == list(found.columns)
    back = encoder.inverse_transform(found)
    assert back[:, 0].tolist() == FRAME["color"].tolist()
    np.testing.assert_allclose(back[:, 1].astype(float), FRAME["age"])
    theirs = OneHot().set_output(transform="polars").fit_transform(polars.from_pandas(FRAME))
    assert theirs.columns == list(found.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(FRAME.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="input_features"):
        encoder.get_feature_names_out(["a"])


def test_columns_of_arrays_are_named_by_position():
    encoder = OneHot().fit(FRAME.to_numpy(object))
    assert encoder.get_feature_names_out().tolist() == ["x0=red", "x0=blue", "x0=green", "x1"]
    assert encoder.get_feature_names_out(["color", "age"])[0] == "color=red"
    with pytest.warns(UserWarning, match="feature names"):
        assert encoder.transform(FRAME).tolist() == encoder.transform(FRAME.to_numpy(object)).tolist()


def test_inverse():
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    for kind in (Standardize, MinMax, PCA):
        given = values[:, :1] if kind is PCA else values
        found = kind().fit(given)
        back = found.inverse_transform(found.transform(given))
        assert back.dtype == np.float64
        np.testing.assert_allclose(back, given)
    sparse = OneHot(sparse=True).fit(FRAME)
    np.testing.assert_array_equal(sparse.inverse_transform(sparse.transform(FRAME)), FRAME.to_numpy(object))


def test_column_transformer_pipeline_and_search():
    """The label depends on a color or a large number, which one component cannot represent."""
    rng = np.random.default_rng(5)
    frame = pandas.DataFrame({"color": rng.choice(["red", "blue"], 400), "x": rng.normal(50, 20, 400)})
    target = (frame["color"] == "red") | (frame["x"] > 80)
    encode = make_column_transformer((OneHot(unseen="missing"), ["color"]), (Standardize(), ["x"]))
    pipeline = make_pipeline(encode, PCA(), LogisticRegression())
    search = GridSearchCV(pipeline, {"pca__dim": np.arange(1, 4), "columntransformer__standardize__missing": ["mean"]})
    search.fit(frame, target)
    assert search.best_params_["pca__dim"] >= 2 and search.best_score_ > 0.9
    assert encode.fit(frame).get_feature_names_out()[-1] == "standardize__x"
    fresh = pandas.DataFrame({"color": ["green"], "x": [np.nan]})
    assert search.predict(fresh).shape == (1,)


def test_texts_in_pipelines_and_searches():
    """A search over the dimension predicts topics of a synthetic corpus far better than the most frequent topic."""
    texts, topics = zip(*World(seed=31).topics(240), strict=True)
    often = max(map(topics.count, topics)) / len(topics)
    for steps, options in (
        ((TfIdf(min_count=1),), {"tfidf__idf": ["plain", "smooth"]}),
        ((LSA(min_count=1),), {"lsa__dim": np.array([2, 20])}),
        ((SkipGram(min_count=1, epochs=30), Standardize()), {"skipgram__dim": [20]}),
        ((Doc2Vec(min_count=1, epochs=30), Standardize()), {"doc2vec__dim": [20]}),
    ):
        search = GridSearchCV(make_pipeline(*steps, LogisticRegression()), options, cv=3).fit(texts, topics)
        assert search.best_score_ > often + 0.3


def test_texts_in_lists_series_and_columns():
    texts = ["red apples", "green apples", "blue cars", "red cars"]
    frame = pandas.DataFrame({"text": texts, "price": [1.0, 2.0, 3.0, 4.0]})
    model = TfIdf(min_count=1).fit(texts)
    expected = model.transform(texts).toarray()
    for given in (np.array(texts, object), frame["text"], frame[["text"]], polars.Series(texts)):
        np.testing.assert_array_equal(model.transform(given).toarray(), expected)
    assert sorted(model.get_feature_names_out()) == ["apples", "blue", "cars", "green", "red"]
    both = make_column_transformer((LSA(dim=2, min_count=1), "text"), (Standardize(), ["price"]))
    assert both.fit_transform(frame).shape == (4, 3)
    assert both.get_feature_names_out().tolist() == ["lsa__lsa0", "lsa__lsa1", "standardize__price"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(texts).toarray(), expected)
    for bad, message in ((frame, "one column; got 2"), ("red", "single str"), ([1], "number 0 is 1"), ([None], "None")):
        with pytest.raises(ValueError, match=message):
            model.transform(bad)


def test_an_unknown_transformer_is_refused():
    with pytest.raises(AttributeError, match="no Word2Vec; it has Autoencoder, BERT, Binary"):
        firth.sklearn.Word2Vec  # noqa: B018


def test_fitted_transformers_can_be_pickled():
    fitted = OneHot().fit(FRAME)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(FRAME), fitted.transform(FRAME))
    assert repr(again) == "OneHot()" and again.model_.feature_names == fitted.model_.feature_names


def test_import_firth_does_not_import_scikit_learn():
    program = "import sys, firth; firth.OneHot; firth.PCA; firth.Table; sys.exit('sklearn' in sys.modules)"
    path = str(firth.__path__[0]).rpartition("/")[0]
    assert subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": path}).returncode == 0


def test_features_of_a_saved_model(tmp_path):
    """A model that embeds texts, in a pipeline with other columns and in a search."""
    rows = list(World(seed=4).topics(120))
    texts, labels = [row.text for row in rows], [row.label for row in rows]
    for name, method in (("lsa", firth.LSA(dim=8)), ("skipgram", firth.SkipGram(dim=12, min_count=1))):
        method.fit(texts).save(tmp_path / name)
    features = Features(model=str(tmp_path / "lsa"))
    np.testing.assert_array_equal(features.fit_transform(texts), firth.load(tmp_path / "lsa", firth.LSA).embed(texts))
    assert features.get_feature_names_out().tolist() == [f"lsa{n}" for n in range(8)]
    firth.LSA(dim=5).fit(texts).save(tmp_path / "again")
    again = Features(model=str(tmp_path / "again"))
    assert again.fit_transform(texts).shape[1] == 5
    firth.LSA(dim=6).fit(texts).save(tmp_path / "again", overwrite=True)
    assert again.fit_transform(texts).shape[1] == 6  # what is in the folder now
    search = GridSearchCV(
        make_pipeline(Features(), LogisticRegression(max_iter=500)),
        {
            "features__model": [str(tmp_path / name) for name in ("lsa", "skipgram")],
            "features__normalize": [True, False],
        },
        cv=3,
    ).fit(texts, labels)
    assert search.best_score_ > 0.5 > 2 / 8 and len(search.cv_results_["params"]) == 4
    frame = pandas.DataFrame({"text": texts, "size": [float(len(text)) for text in texts]})
    combined = make_column_transformer((features, "text"), ("passthrough", ["size"]))
    assert combined.fit_transform(frame).shape == (120, 9)
    assert pickle.loads(pickle.dumps(features)).transform(texts[:2]).shape == (2, 8)
    with refuses("missing_option"):
        Features().fit(texts)
    with pytest.raises(ValueError, match="Texts must be strings"):
        features.transform([3])


def by_comma(text: str) -> list[str]:
    return text.split(",")


def test_token_lists_and_tokenizer_functions():
    lists, labels = [["c++", "runs"], ["Apple", "pie"]] * 10, [0, 1] * 10
    pipeline = make_pipeline(TfIdf(), LogisticRegression()).fit(lists, labels)
    assert pipeline.predict([["c++"], ["Apple"]]).tolist() == [0, 1]
    assert "c++" in pipeline[0].get_feature_names_out() and pipeline.predict(["c++", "Apple"]).tolist() == [0, 1]
    texts = [",".join(tokens) for tokens in lists]
    split = clone(TfIdf(tokenizer=by_comma)).fit(texts)
    assert (split.transform(texts) != pipeline[0].transform(lists)).nnz == 0
    assert split.get_params()["tokenizer"] is by_comma
    assert GridSearchCV(make_pipeline(TfIdf(tokenizer=by_comma), LogisticRegression()), {}, cv=2).fit(texts, labels)
    with pytest.raises(ValueError, match="number 1 is"):
        TfIdf().fit([["a"], 3])


def test_features_of_a_model_with_a_tokenizer_function(tmp_path):
    firth.SkipGram(dim=3, min_count=1, tokenizer=by_comma).fit(["a,b"] * 9).save(tmp_path / "model")
    texts = ["a,b", "b"]
    rows = Features(model=str(tmp_path / "model"), tokenizer=by_comma).fit(texts).transform(texts)
    assert (rows == firth.load(tmp_path / "model", firth.SkipGram, tokenizer=by_comma).embed(texts)).all()
    with refuses("missing_tokenizer"):
        Features(model=str(tmp_path / "model")).fit(texts).transform(texts)
