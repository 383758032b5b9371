"""Methods by name. Each stands in a file of its own, in the folder of its family.

Nothing is imported until it is used. Other packages add methods by the entry point `firth.methods`.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from firth.core.errors import FirthError
from firth.core.options import plain_name

if TYPE_CHECKING:
    from firth.core.method import Method

#: Family (a package of `firth`) -> its methods (modules of that package).
FAMILIES = {
    "words": ("skipgram", "cbow", "glove", "fasttext", "pmi"),
    "documents": ("counts", "tfidf", "lsa", "doc2vec", "fasttext_classifier"),
    "graphs": ("deepwalk", "node2vec"),
    "recommenders": ("als", "bpr", "item2vec", "multdae", "multvae", "rating_factors"),
    "tables": ("autoencoder", "binary", "label", "normalize", "onehot", "pca", "standardize", "vae"),
    "transformers": ("bert", "distil", "gpt", "seq2seq"),
    "finetuning": ("answer", "classify", "regress", "sentence", "tags"),
}


@cache
def method_modules() -> dict[str, str]:
    """Module of each method, by the method's name (its file's name)."""
    found = {name: f"firth.{family}.{name}" for family, names in FAMILIES.items() for name in names}
    for entry in entry_points(group="firth.methods"):
        found.setdefault(entry.name, entry.value.partition(":")[0])
    return found


def family_of(name: str) -> str:
    """words, graphs, … : the folder a method stands in."""
    return method_modules()[plain_name(name)].split(".")[-2]


def method(name: str) -> type[Method]:
    """The method class that stands in the file `name`, also where it is written with hyphens."""
    modules, plain = method_modules(), plain_name(name)
    if plain not in modules:
        near = difflib.get_close_matches(plain, modules, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise FirthError(
            "unknown_method",
            "There is no method {name!r}.{hint} There are {modules}.",
            name=name,
            hint=meant,
            modules=", ".join(sorted(modules)),
        )
    return class_in(modules[plain])


def class_in(module_name: str) -> type[Method]:
    from firth.core.method import Method

    module = importlib.import_module(module_name)
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == module_name:
            return value
    raise FirthError("missing_method", "{module_name} holds no Method.", module_name=module_name)


def class_named(class_name: str) -> type[Method] | None:
    """`SkipGram` is the class of skipgram.py: the file is the class name in lower case (underscores aside)."""
    for name, module in method_modules().items():
        if name.replace("_", "") == class_name.lower():
            found = class_in(module)
            return found if found.__name__ == class_name else None
    return None
