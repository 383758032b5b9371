"""Methods by name. Each is defined in its own file, in the package of its family, and imported at first use.

Other packages add methods with the entry point `firth.methods`: a name and `module:Class`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from firth.core import renamed
from firth.core.errors import FirthError
from firth.core.options import build_settings, options_of, plain_name

if TYPE_CHECKING:
    from firth.core.method import Method

#: Name of a method, in commands and in saved folders -> its class. The package is the method's family.
METHODS = {
    "skipgram": "firth.words.skipgram:SkipGram",
    "cbow": "firth.words.cbow:CBOW",
    "glove": "firth.words.glove:GloVe",
    "fasttext": "firth.words.fasttext:FastText",
    "pmi": "firth.words.pmi:PMI",
    "counts": "firth.documents.counts:Counts",
    "tfidf": "firth.documents.tfidf:TfIdf",
    "lsa": "firth.documents.lsa:LSA",
    "doc2vec": "firth.documents.doc2vec:Doc2Vec",
    "fasttext_classifier": "firth.documents.fasttext_classifier:FastTextClassifier",
    "deepwalk": "firth.graphs.deepwalk:DeepWalk",
    "node2vec": "firth.graphs.node2vec:Node2Vec",
    "als": "firth.recommenders.als:ALS",
    "bpr": "firth.recommenders.bpr:BPR",
    "item2vec": "firth.recommenders.item2vec:Item2Vec",
    "multdae": "firth.recommenders.multdae:MultDAE",
    "multvae": "firth.recommenders.multvae:MultVAE",
    "rating_factors": "firth.recommenders.rating_factors:RatingFactors",
    "sequence_recommender": "firth.recommenders.sequence_recommender:SequenceRecommender",
    "two_tower": "firth.recommenders.two_tower:TwoTower",
    "autoencoder": "firth.tables.autoencoder:Autoencoder",
    "binary": "firth.tables.binary:Binary",
    "minmax": "firth.tables.minmax:MinMax",
    "onehot": "firth.tables.onehot:OneHot",
    "ordinal": "firth.tables.ordinal:Ordinal",
    "pca": "firth.tables.pca:PCA",
    "standardize": "firth.tables.standardize:Standardize",
    "vae": "firth.tables.vae:VAE",
    "bert": "firth.transformers.bert:BERT",
    "distil": "firth.transformers.distil:Distil",
    "gpt": "firth.transformers.gpt:GPT",
    "seq2seq": "firth.transformers.seq2seq:Seq2Seq",
    "linear_classifier": "firth.finetuning.linear_classifier:LinearClassifier",
    "linear_regressor": "firth.finetuning.linear_regressor:LinearRegressor",
    "question_answerer": "firth.finetuning.question_answerer:QuestionAnswerer",
    "sentence_encoder": "firth.finetuning.sentence_encoder:SentenceEncoder",
    "text_classifier": "firth.finetuning.text_classifier:TextClassifier",
    "text_regressor": "firth.finetuning.text_regressor:TextRegressor",
    "token_classifier": "firth.finetuning.token_classifier:TokenClassifier",
}


@cache
def method_classes() -> dict[str, str]:
    """`module:Class` of each method, by the method's name; also those that other packages declare."""
    added = {entry.name: entry.value for entry in entry_points(group="firth.methods")}
    return {**added, **METHODS}


def family_of(name: str) -> str:
    """The family of a method, such as words or graphs: its package, or its module if that is in no package."""
    return method_classes()[plain_name(name)].partition(":")[0].split(".")[-2:][0]


def method(name: str) -> type[Method]:
    """The class of a method; its name may be written with hyphens."""
    classes, plain = method_classes(), plain_name(name)
    if plain not in classes:
        raise unknown_method(name)
    module, _, class_name = classes[plain].partition(":")
    method_class: type[Method] = getattr(importlib.import_module(module), class_name)
    return method_class


def unknown_method(name: str) -> FirthError:
    """Return the error for an unknown method, with the intended one if it can be guessed."""
    classes, plain = method_classes(), plain_name(name)
    close = difflib.get_close_matches(plain, classes, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if plain in renamed.METHODS:
        hint = f" It is called {renamed.METHODS[plain]!r} now."
    return FirthError(
        "unknown_method",
        "There is no method {name!r}.{hint} There are {available}.",
        name=name,
        hint=hint,
        available=", ".join(sorted(classes)),
    )


def name_of(method_class: type[Method]) -> str:
    """The name of a method; for a class that is not registered, the class name in lower case."""
    target = f"{method_class.__module__}:{method_class.__qualname__}"
    names = {value: name for name, value in method_classes().items()}
    return names.get(target, method_class.__qualname__.lower())


def stored_method(name: str, options: Mapping[str, Any]) -> Method:
    """The method of a saved folder; names of earlier versions are translated."""
    current_name = renamed.METHODS.get(name, name)
    method_class = method(current_name)
    known = [item.name for item in options_of(method_class)]
    built: Method = build_settings(method_class, renamed.current_options(current_name, options, known))
    return built


def class_named(class_name: str) -> type[Method] | None:
    """The method whose class has this name."""
    for name, target in method_classes().items():
        if target.partition(":")[2] == class_name:
            return method(name)
    return None
