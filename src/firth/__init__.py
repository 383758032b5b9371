"""Firth turns text, tables, graphs and who-used-what into vectors.

    import firth
    model = firth.SkipGram(dim=100).fit(firth.Corpus("wiki/*.txt.gz"))
    model.vectors.neighbors("river")

Everything is imported at its first use, so that `import firth` is quick.
"""

from __future__ import annotations

import importlib
from typing import Any

from firth.version import __version__

_PLACES = {
    "Alike": "firth.data.alike",
    "BPE": "firth.data.subwords",
    "Characters": "firth.data.subwords",
    "Cooccurrence": "firth.data.cooccur",
    "Examples": "firth.data.examples",
    "Corpus": "firth.data.corpus",
    "Labelled": "firth.data.labelled",
    "SubwordTokenizer": "firth.data.subword_tokenizer",
    "Graph": "firth.data.graph",
    "Index": "firth.index",
    "Ratings": "firth.data.ratings",
    "Pairs": "firth.data.pairs",
    "PostgresIndex": "firth.index",
    "Questions": "firth.data.questions",
    "Table": "firth.data.table",
    "TaggedWords": "firth.data.tagged",
    "Tokens": "firth.data.tokens",
    "Vocabulary": "firth.data.vocabulary",
    "WordPiece": "firth.data.subwords",
    "Method": "firth.core.method",
    "Model": "firth.core.model",
    "Run": "firth.core.run",
    "Vectors": "firth.core.vectors",
    "FirthError": "firth.core.errors",
    "FirthWarning": "firth.core.errors",
    "align": "firth.studies",
    "compare": "firth.studies",
    "encode_corpus": "firth.data.subword_tokens",
    "export": "firth.model_files",
    "odd_one_out": "firth.core.vectors",
    "option": "firth.core.options",
    "read_vectors": "firth.formats",
    "similarity": "firth.core.vectors",
    "sweep": "firth.studies",
    "train": "firth.core.train",
    "write_vectors": "firth.formats",
}
_RENAMED = {"load": ("firth.core.saved", "load_model"), "verify": ("firth.core.saved", "verify_model")}
_PACKAGES = (
    *("core", "data", "documents", "evaluate", "finetuning", "formats", "graphs", "index", "kernels", "maps"),
    *("recommenders", "sklearn", "studies", "tables", "training", "transformers", "words"),
)

__all__ = ["__version__", "load", "verify", *_PLACES]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _RENAMED:
        module, original = _RENAMED[name]
        return getattr(importlib.import_module(module), original)
    if name in _PACKAGES:
        return importlib.import_module(f"firth.{name}")
    if not name.startswith("_"):
        from firth.core.registry import class_named

        found = class_named(name)
        if found is not None:
            return found
    raise AttributeError(f"module 'firth' has no attribute {name!r}")
