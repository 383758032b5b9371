"""Renames classes, methods, options and modules, from one table of old and new names; nothing else.

    python tools/renames.py      # in a checkout; does nothing where every name has changed already

A branch that was made before the renames is brought up to date by running this on it before it is merged. Identifiers
are replaced in Python's tokens (not in prose), in code spans and code blocks of Markdown, and in quoted names.
"""

from __future__ import annotations

import fnmatch
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Old module below `firth` -> new one.
MODULES = {
    "data.alike": "data.similar_pairs",
    "data.labelled": "data.labeled_texts",
    "data.pairs": "data.translation_pairs",
    "data.ratings": "data.interactions",
    "data.ratings_files": "data.interaction_files",
    "data.tagged": "data.tagged_sentences",
    "finetuning.answer": "finetuning.question_answerer",
    "finetuning.classify": "finetuning.text_classifier",
    "finetuning.regress": "finetuning.text_regressor",
    "finetuning.sentence": "finetuning.sentence_encoder",
    "finetuning.tags": "finetuning.token_classifier",
    "nets.bend": "nets.gelu",
    "nets.people": "nets.user_autoencoder",
    "tables.label": "tables.ordinal",
    "tables.normalize": "tables.minmax",
}
#: Other files that carry a name.
FILES = {
    "docs/methods/answer.md": "docs/methods/question_answerer.md",
    "docs/methods/classify.md": "docs/methods/text_classifier.md",
    "docs/methods/label.md": "docs/methods/ordinal.md",
    "docs/methods/normalize.md": "docs/methods/minmax.md",
    "docs/methods/regress.md": "docs/methods/text_regressor.md",
    "docs/methods/sentence.md": "docs/methods/sentence_encoder.md",
    "docs/methods/tags.md": "docs/methods/token_classifier.md",
    "tests/data/test_alike.py": "tests/data/test_similar_pairs.py",
    "tests/data/test_labelled.py": "tests/data/test_labeled_texts.py",
    "tests/data/test_pairs.py": "tests/data/test_translation_pairs.py",
    "tests/data/test_ratings.py": "tests/data/test_interactions.py",
    "tests/data/test_tagged.py": "tests/data/test_tagged_sentences.py",
}
#: Methods as commands name them (`firth train label`).
METHODS = {
    "answer": "question_answerer",
    "classify": "text_classifier",
    "label": "ordinal",
    "normalize": "minmax",
    "regress": "text_regressor",
    "sentence": "sentence_encoder",
    "tags": "token_classifier",
}


@dataclass(frozen=True)
class Name:
    """An identifier, in the files it is renamed in."""

    old: str
    new: str
    files: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    quoted: bool = False  # also where it is a whole string, and as a flag of a command


NAMES = (
    Name("Alike", "SimilarPairs"),
    Name("Labelled", "LabeledTexts"),
    Name("TaggedWords", "TaggedSentences"),
    Name("Ratings", "Interactions"),
    Name(
        "Pairs",
        "TranslationPairs",
        without=("*next_sentence_pairs*", "*bert_pretraining*", "*packing*", "*bert_training*"),
    ),
    Name("Answer", "QuestionAnswerer", without=("*/server/*",)),
    Name("Classify", "TextClassifier"),
    Name("Label", "Ordinal", without=("*/maps/*", "*text_classification*")),
    Name("Normalize", "MinMax", without=("*sentence_transformers_folder*",)),
    Name("Regress", "TextRegressor"),
    Name("Sentence", "SentenceEncoder", without=("*tagged*", "*token_classification*", "src/firth/data/*")),
    Name("Tags", "TokenClassifier", without=("*/data/*",)),
    Name("PeopleModel", "RecommenderModel"),
    Name("places_of", "position_ids", files=("src/firth/*", "tests/*", "benchmarks/*")),
    Name("chosen_engine", "resolve_engine"),
    Name("Mirror", "TiedDecoder", files=("src/firth/tables/*", "src/firth/nets/*", "tests/*")),
    Name("Looking", "TracesAttention", files=("src/firth/transformers/*",)),
    Name("Looked", "AttentionTrace", files=("src/firth/transformers/*",)),
    Name("watched", "traced_copy", files=("src/firth/nets/*", "src/firth/transformers/*", "tests/nets/*")),
    Name("noise_exponent", "negative_exponent", quoted=True),
    Name("batch_rows", "batch_size", quoted=True),
)


@dataclass(frozen=True)
class Option:
    """An option whose name is a plain word: renamed where it is declared, read, or given by keyword or flag."""

    old: str
    new: str
    families: tuple[str, ...]  # folders of src/firth and tests; docs and benchmarks are searched too
    flag: bool = True  # whether the flag --old means this option in the docs and the tests of the command line


OPTIONS = (
    Option("anneal", "kl_annealing", ("tables", "recommenders", "training")),
    Option("batch", "batch_size", ("finetuning",)),
    Option("category", "categorical", ("tables", "training")),
    Option("clip", "max_grad_norm", ("training", "transformers", "finetuning", "tables", "recommenders")),
    Option("context", "context_length", ("transformers", "training")),
    Option("decay", "schedule", ("training", "transformers", "finetuning", "tables", "recommenders")),
    Option("dims", "matryoshka_dims", ("finetuning",)),
    Option("hidden", "feedforward_dim", ("transformers", "training")),
    Option("length", "max_length", ("finetuning",), flag=False),
    Option("length", "walk_length", ("graphs",), flag=False),
    Option("longer", "overlong", ("finetuning",)),
    Option("pool", "pooling", ("finetuning",)),
    Option("rates", "learning_rates", ("finetuning",)),
    Option("vocabulary", "vocabulary_size", ("transformers",), flag=False),
    Option("walks", "walks_per_node", ("graphs",)),
    Option("widths", "hidden_sizes", ("tables", "recommenders", "training")),
)
#: Attributes, with the name before the dot.
ATTRIBUTES = {"size.places": "size.max_positions", "net.following": "net.next_sentence"}
TEXT = (".py", ".pyi", ".md", ".toml", ".txt", ".html", ".svelte", ".ts")
LEFT = (
    "tools/*",
    "CHANGELOG.md",
    "benchmarks/LOG.md",
    "src/firth/core/renamed.py",
    "docs/results/*",
    "tests/golden/*",
)


def in_python(text: str, change: Callable[[str], str]) -> str:
    """`text` with `change` applied to names, and to what f-strings compute."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pieces, done = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            new = change(token.string)
        elif token.type == tokenize.STRING and "f" in token.string[:3].lower().split('"')[0].split("'")[0]:
            new = re.sub(
                r"\{[^{}\"']*", lambda match: re.sub(r"\w+", lambda word: change(word[0]), match[0]), token.string
            )
        else:
            continue
        if new != token.string:
            begin = starts[token.start[0] - 1] + token.start[1]
            pieces += [text[done:begin], new]
            done = starts[token.end[0] - 1] + token.end[1]
    return "".join([*pieces, text[done:]])


def in_markdown(text: str, change: Callable[[str], str]) -> str:
    def words(match: re.Match[str]) -> str:
        return re.sub(r"\w+", lambda word: change(word[0]), match[0])

    blocks = re.split(r"(^```python$.*?^```$)", text, flags=re.M | re.S)
    spans = [re.sub(r"`[^`\n]+`", words, part) if number % 2 == 0 else part for number, part in enumerate(blocks)]
    return "".join(
        re.sub(r"\w+", lambda word: change(word[0]), part) if number % 2 else part for number, part in enumerate(spans)
    )


def fits(file: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(file, pattern) for pattern in patterns)


def rewrite(file: str, text: str) -> str:
    here = [name for name in NAMES if fits(file, name.files) and not fits(file, name.without)]
    table = {name.old: name.new for name in here}
    if file.endswith((".py", ".pyi")):
        text = in_python(text, lambda word: table.get(word, word))
    elif file.endswith(".md"):
        text = in_markdown(text, lambda word: table.get(word, word))
    for name in here:
        text = re.sub(rf"\bfirth\.{name.old}\b", f"firth.{name.new}", text)
        if name.old[0].isupper():
            text = re.sub(rf"(?<=[\"`]){name.old}(?=[.`])", name.new, text)  # "Sentence.dims", `Ratings`
        if name.quoted:
            text = re.sub(rf"(?<=[\"'`]){name.old}(?=[\"'`=])", name.new, text)
            text = text.replace(f"--{name.old.replace('_', '-')}", f"--{name.new.replace('_', '-')}")
    for old, new in ATTRIBUTES.items():
        text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    for option in OPTIONS:
        text = rewrite_option(file, text, option)
    for old, new in MODULES.items():
        text = re.sub(rf"\bfirth\.{re.escape(old)}\b", f"firth.{new}", text)
        text = re.sub(rf"\b{old.replace('.', '/')}\.py\b", f"{new.replace('.', '/')}.py", text)
        text = re.sub(
            rf"\bfrom firth\.{old.split('.')[0]} import {old.split('.')[1]}$",
            f"from firth.{new.split('.')[0]} import {new.split('.')[1]}",
            text,
            flags=re.M,
        )
    for old, new in FILES.items():
        text = text.replace(old.removeprefix("docs/"), new.removeprefix("docs/"))
    for old, new in METHODS.items():
        text = re.sub(rf"(\bfirth (?:train|finetune|sweep) ){old}\b(?!-)", rf"\g<1>{new.replace('_', '-')}", text)
        text = re.sub(rf"(\"(?:train|finetune|sweep)\", \"){old}\"", rf'\g<1>{new}"', text)
        text = re.sub(rf"(\bmethods/){old}\b", rf"\g<1>{new}", text)
    for name in here:  # titles of links to pages of methods
        text = re.sub(rf"\[{name.old}\](?=\((?:methods/)?\w+\.md)", f"[{name.new}]", text)
    return text


#: The methods of a family, for options given by keyword anywhere.
CLASSES = {
    "finetuning": "TextClassifier|TextRegressor|TokenClassifier|QuestionAnswerer|SentenceEncoder",
    "graphs": "DeepWalk|Node2Vec",
    "recommenders": "MultDAE|MultVAE",
    "tables": "Autoencoder|VAE|Standardize|MinMax",
    "transformers": "BERT|GPT|Seq2Seq",
}


def rewrite_calls(text: str, classes: str, old: str, new: str) -> str:
    """`text` with the keyword `old` renamed in calls of `classes`."""
    done = 0
    while match := re.compile(rf"\b(?:{classes})\(").search(text, done):
        end, depth = match.end(), 1
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        inside = re.sub(rf"(?<=[(, ]){old}=(?![= ])", f"{new}=", text[match.end() - 1 : end])
        text, done = text[: match.end() - 1] + inside + text[end:], match.end()
    return text


def rewrite_option(file: str, text: str, option: Option) -> str:
    old, new = option.old, option.new
    classes = [CLASSES[family] for family in option.families if family in CLASSES]
    text = rewrite_calls(text, "|".join(classes), old, new)
    if any(fits(file, (f"src/firth/{family}/*", f"tests/{family}/*")) for family in option.families):
        text = re.sub(rf"\b(self|method|options|chosen|asked|tuned)\.{old}\b(?!\()", rf"\1.{new}", text)
        text = re.sub(rf"^(    ){old}(: [^=\n]+ = option\()", rf"\1{new}\2", text, flags=re.M)
        text = re.sub(rf"(?<=[(, {{]){old}=(?![= ])", f"{new}=", text)
        text = re.sub(rf"(\"[A-Z]\w+\.){old}\"", rf'\1{new}"', text)
        if file.startswith("tests/"):
            text = re.sub(rf"(?<=[{{, ]\"){old}(?=\": )", new, text)
    if option.flag and fits(file, ("docs/*", "tests/*", "README.md", "benchmarks/*")):
        text = re.sub(rf"--{old.replace('_', '-')}\b(?!-)", f"--{new.replace('_', '-')}", text)
    return text


def move_files() -> None:
    pairs = {
        f"src/firth/{old.replace('.', '/')}.py": f"src/firth/{new.replace('.', '/')}.py" for old, new in MODULES.items()
    }
    for old, new in {**pairs, **FILES}.items():
        if (ROOT / old).exists():
            subprocess.run(["git", "mv", old, new], check=True, cwd=ROOT)


def main() -> None:
    move_files()
    files = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split("\n")
    for file in files:
        path = ROOT / file
        if path.suffix in TEXT and not fits(file, LEFT) and "/static/" not in file and path.is_file():
            before = path.read_text(encoding="utf-8")
            after = rewrite(file, before)
            if after != before:
                path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
