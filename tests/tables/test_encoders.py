"""Table encoders: worked examples, equality with scikit-learn, properties, and invalid input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses
from scipy.sparse import issparse
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import firth
from firth import Binary, MinMax, OneHot, Ordinal, Run, Standardize, Table, Tokens, Vocabulary
from firth.tables.encoder_model import EncoderModel

ENCODERS = (OneHot, Ordinal, Binary, Standardize, MinMax)
MIXED = {"color": ["red", None, "blue", "red"], "age": [1.0, None, 2.5, 4.0], "member": [True, False, None, True]}
NAN = float("nan")

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
category_rows = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(words, min_size=width, max_size=width), min_size=1, max_size=20)
)
plain_numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
number_rows = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(plain_numbers, min_size=width, max_size=width), min_size=1, max_size=20)
)


def codes(method, data):
    return method.fit(data).transform(data).tolist()


def test_one_hot_by_hand():
    model = OneHot().fit(["red", "blue", "red", "green"])
    assert model.transform(["green", "red"]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert model.feature_names == ["x0=red", "x0=blue", "x0=green"]
    assert model.inverse([[0, 0.2, 0.7]]).to_dict() == {"x0": ["green"]}


def test_ordinal_by_hand():
    model = Ordinal().fit({"size": ["S", "M", "L", "S"]})
    assert model.transform({"size": ["L", "S"]}).tolist() == [[2], [0]] and model.feature_names == ["size"]
    assert codes(Ordinal(order="sorted"), ["S", "M", "L"]) == [[2], [1], [0]]


def test_binary_by_hand():
    """As BinaryEncoder of category_encoders: ids start at 1 in order of appearance, highest bit first, 0 is missing."""
    model = Binary(unseen="missing").fit({"c": ["a", "b", "c", "d", "e"]})
    rows = model.transform({"c": ["a", "b", "c", "d", "e", None, "new"]})
    assert rows.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert model.feature_names == ["c_0", "c_1", "c_2"]
    widths = {n: Binary().fit([str(i) for i in range(n)]).width for n in (1, 2, 3, 4, 7, 8)}
    assert widths == {1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4}


def test_standardize_by_hand():
    """Mean 3, squared deviations 4, 0, 4: σ = √(8/3)."""
    sigma = (8 / 3) ** 0.5
    np.testing.assert_allclose(codes(Standardize(), [1, 3, 5]), [[-2 / sigma], [0], [2 / sigma]], rtol=1e-15)


def test_minmax_by_hand():
    assert codes(MinMax(), [10, 15, 20]) == [[0], [0.5], [1]]
    model = MinMax(low=-1.0, high=1.0).fit([10, 15, 20])
    assert model.transform([10, 20, 25, 0]).tolist() == [[-1], [1], [2], [-3]]


def test_mixed_tables_are_encoded_in_one_call():
    model = OneHot(numeric="normalize").fit(MIXED)
    assert model.feature_names == ["color=red", "color=blue", "age", "member=true", "member=false"]
    expected = [[1, 0, 0, 1, 0], [0, 0, NAN, 0, 1], [0, 1, 0.5, 0, 0], [1, 0, 1, 1, 0]]
    np.testing.assert_array_equal(model.transform(MIXED), expected)
    assert Standardize(categorical="label").fit(MIXED).feature_names == ["color", "age", "member"]
    assert Standardize(categorical="drop").fit(MIXED).feature_names == ["age"]
    assert Binary(numeric="drop").fit(MIXED).feature_names == ["color_0", "color_1", "member_0", "member_1"]


@pytest.mark.parametrize("method", [OneHot(sparse=True, numeric="encode"), *(kind() for kind in ENCODERS)])
def test_inverse_and_saved_model_give_the_table_back(method, tmp_path):
    model = method.fit(MIXED)
    rows = model.transform(MIXED)
    assert issparse(rows) == getattr(method, "sparse", False)
    assert model.inverse(rows).to_dict() == MIXED
    model.save(tmp_path / "model")
    loaded = firth.load(tmp_path / "model")
    assert isinstance(loaded, EncoderModel) and loaded.method == method
    assert loaded.training == model.training == {**model.training, "rows": 4, "columns": 3}
    np.testing.assert_array_equal(loaded.embed(MIXED), model.embed(MIXED))
    assert loaded.inverse(rows).to_dict() == MIXED and model.embed(MIXED).dtype == np.float32


@settings(max_examples=40)
@given(category_rows)
def test_categories_equal_scikit_learn(rows):
    array = np.array(rows, dtype=object)
    theirs = OneHotEncoder(sparse_output=False).fit_transform(array)
    np.testing.assert_array_equal(OneHot(order="sorted").fit(array).transform(array), theirs)
    np.testing.assert_array_equal(OneHot(order="sorted", sparse=True).fit(rows).transform(rows).toarray(), theirs)
    np.testing.assert_array_equal(codes(Ordinal(order="sorted"), rows), OrdinalEncoder().fit_transform(array))


@settings(max_examples=40)
@given(number_rows)
def test_numbers_as_categories_equal_scikit_learn(rows):
    array = np.array(rows)
    theirs = OneHotEncoder(sparse_output=False).fit_transform(array)
    np.testing.assert_array_equal(OneHot(order="sorted", numeric="encode").fit(array).transform(array), theirs)


def test_integers_beyond_float_precision_stay_distinct(tmp_path):
    ids = {"id": [2**53, 2**53 + 1, -(2**62)]}
    model = Ordinal(numeric="encode").fit(ids)
    model.save(tmp_path / "model")
    loaded = firth.load(tmp_path / "model", Ordinal)
    assert (
        loaded.transform(ids).tolist() == [[0], [1], [2]]
        and loaded.inverse([[1], [2]]).to_dict()["id"] == ids["id"][1:]
    )


@given(number_rows, st.floats(-10, 9), st.floats(0.5, 10))
def test_numbers_equal_scikit_learn(rows, low, extent):
    array = np.array(rows)
    np.testing.assert_allclose(codes(Standardize(), array), StandardScaler().fit_transform(array), atol=1e-7)
    theirs = MinMaxScaler((low, low + extent)).fit_transform(array)
    np.testing.assert_allclose(codes(MinMax(low=low, high=low + extent), array), theirs, atol=1e-9)


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), words), min_size=1, max_size=20))
def test_missing_labels_equal_scikit_learn(values):
    array = np.array(
        [[np.nan if value is None else value] for value in values], dtype=object
    )  # scikit-learn's missing value
    table = Table({"c": values}, categories=["c"])
    np.testing.assert_array_equal(codes(Ordinal(order="sorted"), table), OrdinalEncoder().fit_transform(array))


def test_missing_numbers_equal_scikit_learn():
    array = np.random.default_rng(1).normal(5, 3, (50, 4))
    array[np.random.default_rng(2).random(array.shape) < 0.2] = np.nan
    np.testing.assert_allclose(codes(Standardize(), array), StandardScaler().fit_transform(array), atol=1e-12)
    np.testing.assert_allclose(codes(MinMax(), array), MinMaxScaler().fit_transform(array), atol=1e-12)


@given(st.lists(st.one_of(st.none(), words), min_size=1, max_size=30))
def test_properties_of_category_codes(values):
    count = len(set(values) - {None})
    for method in (OneHot(), Ordinal(), Binary()):
        model = method.fit(Table({"c": values}, categories=["c"]))
        rows = model.transform({"c": values})
        assert model.inverse(rows).to_dict() == {"c": values}
        assert len(model.vectors) == count
        assert len(np.unique(model.vectors.matrix, axis=0)) == count  # no two categories share a code
    one_hot = OneHot().fit(Table({"c": values}, categories=["c"]))
    assert one_hot.transform({"c": values}).sum(axis=1).tolist() == [float(value is not None) for value in values]
    np.testing.assert_array_equal(one_hot.vectors.matrix @ one_hot.vectors.matrix.T, np.eye(count))  # orthonormal


@given(
    st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30),
    st.floats(-5, 5),
    st.floats(0.001, 10),
)
def test_properties_of_scaled_numbers(numbers, low, extent):
    method = MinMax(low=low, high=low + extent)
    rows = method.fit(numbers).transform(numbers)
    slack = 1e-12 * (1 + abs(low) + extent)
    assert low - slack <= rows.min() and rows.max() <= low + extent + slack
    assert rows.min() == low
    reach = max(numbers) - min(numbers)
    for model in (method.fit(numbers), Standardize().fit(numbers), OneHot().fit(numbers)):
        back = model.inverse(model.transform(numbers)).numbers("x0")
        size = max(map(abs, numbers))
        np.testing.assert_allclose(back, numbers, rtol=1e-9, atol=1e-9 * reach + 1e-12 * size)
    z = Standardize().fit(numbers).transform(numbers)
    if reach > 1e-6 * max(map(abs, numbers)):
        np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=1e-6)


def test_constants_and_one_row():
    assert codes(Standardize(), [7, 7, 7]) == [[0], [0], [0]] and codes(Standardize(), [[1, 2]]) == [[0, 0]]
    assert codes(MinMax(low=2.0, high=3.0), [7, 7]) == [[2], [2]]
    assert Standardize().fit([7, 7]).transform([9]).tolist() == [[2]]
    assert MinMax().fit([0.1] * 3).inverse([[0.0]]).to_dict() == {"x0": [0.1]}
    assert codes(OneHot(), ["a"]) == [[1]] and codes(Binary(), ["a"]) == [[1]] and codes(Ordinal(), ["a"]) == [[0]]
    assert codes(Standardize(), [1e-320, 3e-320, 0]) and codes(MinMax(), [0, 5e-324]) == [[0], [1]]


def test_missing_cells():
    data = {"c": ["a", None], "n": [1.0, None]}
    np.testing.assert_array_equal(codes(OneHot(), data), [[1, 1], [0, NAN]])
    np.testing.assert_array_equal(codes(Ordinal(), data), [[0, 1], [NAN, NAN]])
    assert codes(Binary(missing="mean"), {"c": ["a", None], "n": [1.0, None]}) == [[1, 1], [0, 1]]
    assert codes(Standardize(missing="mean"), [1, None, 3]) == [[-1], [0], [1]]
    for method in (OneHot(missing="error"), MinMax(missing="error")):
        with refuses("missing_value", name="c", row=2):
            method.fit(data)
        with refuses("missing_value", name="n", row=1):
            method.fit({"c": ["a"], "n": [1]}).transform({"c": ["a"], "n": [NAN]})


def test_columns_without_any_value():
    empty = Table({"c": [None, None]}, categories=["c"])
    assert OneHot().fit(empty).transform(empty).shape == Binary().fit(empty).transform(empty).shape == (2, 0)
    assert OneHot().fit(empty).inverse(np.zeros((2, 0))).to_dict() == {"c": [None, None]}
    for method in (OneHot(), Ordinal(), Standardize(), MinMax()):
        np.testing.assert_array_equal(codes(method, [[NAN], [NAN]]), [[NAN], [NAN]])
    with refuses("empty_data", name="x0"):
        Standardize(missing="mean").fit([[NAN]])


def test_unseen_categories():
    with refuses("unknown_category", name="c", row=2, value="new", n_levels=1, examples="'a'"):
        OneHot().fit({"c": ["a"]}).transform({"c": ["a", "new"]})
    for kind, code in ((OneHot, 0), (Binary, 0), (Ordinal, NAN)):
        model = kind(unseen="missing").fit(["a"])
        np.testing.assert_array_equal(model.transform(["new"]), [[code]])
        assert model.coded(["a", "new"]).unseen.tolist() == [0, 1]
        assert model.inverse(model.transform(["new"])).to_dict() == {"x0": [None]}


def test_infinities_are_refused():
    for method in (OneHot(), Standardize(), MinMax()):
        with refuses("non_finite", name="x0", row=2):
            method.fit([1.0, float("inf")])
        with refuses("non_finite", name="x0", row=1):
            method.fit([1.0, 2.0]).transform([-float("inf")])
    with refuses("out_of_range", name="x0", smallest=-1.7e308, largest=1.7e308):
        Standardize().fit([-1.7e308, 1.7e308])
    with refuses("out_of_range", row=2, got=1e300):
        OneHot().fit([1.0, 1e300]).embed([1.0, 1e300])


def test_empty_tables():
    tables: list[Any] = [[], {"a": []}, np.zeros((0, 2))]
    for kind in ENCODERS:
        for data in tables:
            with refuses("too_few", method=kind.__name__):
                kind().fit(data)
        model = kind().fit(MIXED)
        assert model.transform([]).shape == model.embed([]).shape == (0, model.width)


def test_later_tables_must_have_the_columns():
    model = OneHot().fit({"a": ["x"], "b": [1]})
    assert model.transform({"b": [2], "more": ["?"], "a": ["x"]}).tolist() == [[1, 2]]
    assert model.transform([["x", 3]]).tolist() == [[1, 3]]  # without names, columns are matched by position
    with refuses("unknown_column", missing="b", available="a, c"):
        model.transform({"a": ["x"], "c": [1]})
    with refuses("shape_mismatch", expected=2, got=1):
        model.transform(["x"])
    with refuses("malformed_data", got="y"):
        model.transform({"a": ["x"], "b": ["y"]})
    assert OneHot(numeric="drop").fit({"a": ["x"], "b": [1]}).transform({"a": ["x"]}).tolist() == [[1]]


def test_files_are_read_with_the_column_types_of_fit(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip\n007\n012\n")
    model = OneHot().fit(Table(path, categories=["zip"]))
    assert model.transform(path).tolist() == [[1, 0], [0, 1]]


def test_vocabulary_and_tokens_keep_their_ids():
    vocabulary = Vocabulary(["the", "cat", "sat"], [9, 4, 1])
    assert OneHot().fit(vocabulary).transform(["sat", "the"]).tolist() == [[0, 0, 1], [1, 0, 0]]
    model = Binary().fit(Tokens.from_lists([["b", "a", "b"]]))
    assert model.vectors.keys == ["b", "a"] and model.vectors.matrix.tolist() == [[0, 1], [1, 0]]


def test_codes_are_listed_as_vectors():
    model = Ordinal().fit(MIXED)
    assert list(model.tables) == ["color", "member"] and model.vectors["blue"].tolist() == [1]
    with refuses("unknown_key", key="green"):
        model.vectors["green"]
    with refuses("unknown_key", key="a"):
        Standardize().fit([1, 2]).vectors["a"]
    many = OneHot(sparse=True).fit([str(number) for number in range(20_000)])  # 1.5 GiB of codes, nearly all 0
    assert many.tables == {} and many.transform(["7", "19999"]).nnz == 2
    assert many.inverse(many.transform(["7", "19999"])).to_dict() == {"x0": ["7", "19999"]}


def test_invalid_codes_are_refused():
    with refuses("malformed_data", row=1, name="x0", n_levels=2, got=[1.0, 1.0]):
        Binary().fit(["a", "b"]).inverse([[1.0, 1.0]])
    for code in (2.0, -1.0, 0.5, np.inf):
        with refuses("malformed_data", row=2, name="x0", got=[code]):
            Ordinal().fit(["a", "b"]).inverse([[1.0], [code]])
    with refuses("shape_mismatch", width=2, got=(1, 3)):
        OneHot().fit(["a", "b"]).inverse([[0, 1, 0]])


def test_invalid_settings_are_refused():
    with refuses("invalid_value", option="MinMax.low", got=1.0, high=1.0):
        MinMax(low=1.0)
    with refuses("unsupported_start", method="OneHot"):
        OneHot().fit(["a"], Run(), OneHot().fit(["a"]))


def test_damaged_models_are_refused():
    model = OneHot().fit(MIXED)
    parts = model.parts()
    columns = parts.documents["columns"]
    for wrong in (
        "text",
        [5],
        [{"name": 5, "code": "drop"}],
        [{"name": "a", "code": "no"}],
        [*columns, columns[1]],
        [{**columns[0], "categories": ["a", "a"]}],
        [{**columns[0], "categories": [1]}],
        [{**columns[0], "type": "number"}],
    ):
        with refuses("damaged_model", name="columns"):
            type(model).from_parts(model.method, type(parts)(parts.arrays, {"columns": wrong}), {})
