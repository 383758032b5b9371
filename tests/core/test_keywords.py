"""Keywords of other libraries are answered with Firth's."""

from __future__ import annotations

import copy
import pickle

import pytest
from refusing import refuses

import firth
from firth.core import keywords, registry
from firth.core.options import options_of


@pytest.mark.parametrize(
    ("method", "given", "meant"),
    [
        (firth.SkipGram, "vector_size", "'dim'"),
        (firth.SkipGram, "workers", "Run(threads=…)"),
        (firth.SkipGram, "ns_exponent", "'negative_exponent'"),
        (firth.SkipGram, "noise_exponent", "'negative_exponent' now"),
        (firth.SkipGram, "windw", "'window'"),
        (firth.SkipGram, "hs", 'loss="hierarchical"'),
        (firth.PCA, "n_components", "'dim'"),
        (firth.ALS, "factors", "'dim'"),
        (firth.Node2Vec, "num_walks", "'walks_per_node'"),
        (firth.TfIdf, "max_features", "'max_vocabulary'"),
    ],
)
def test_unknown_options_name_the_one_that_was_meant(method, given, meant):
    with refuses("unknown_option", name=given) as caught:
        method(**{given: 1})
    assert meant in caught.value.values["hint"]


def test_an_option_that_resembles_nothing_has_no_hint():
    with refuses("unknown_option", name="qqqqqq", hint=""):
        firth.SkipGram(qqqqqq=1)  # type: ignore[call-arg]


def test_every_keyword_leads_somewhere():
    """Each entry names an option of some method, or a parameter of a query."""
    methods = [registry.method(name) for name in registry.method_classes()]
    known = {item.name for method in methods for item in options_of(method)} | {"k"}
    assert [name for name, here in keywords.KEYWORDS.items() if not known & set(here)] == []


def test_queries_take_k():
    vectors = firth.Vectors(["a", "b"], [[1.0, 0.0], [0.0, 1.0]])
    with refuses("unknown_option", kind="neighbors", name="topn", hint=" Did you mean 'k'?"):
        vectors.neighbors("a", topn=1)  # type: ignore[call-arg]
    with refuses("unknown_option", kind="analogy", name="topn"):
        vectors.analogy("a", "b", "a", topn=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="use neighbors"):
        vectors.most_similar("a")


def test_methods_and_vectors_are_copied_and_pickled():
    method = firth.SkipGram(dim=7)
    vectors = firth.Vectors(["a"], [[1.0]])
    assert copy.deepcopy(method) == pickle.loads(pickle.dumps(method)) == method
    assert copy.deepcopy(vectors).keys == pickle.loads(pickle.dumps(vectors)).keys == ["a"]
