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
    "data.cooccur": "data.cooccurrence",
    "data.encode": "data.corpus_encoding",
    "data.labelled": "data.labeled_texts",
    "data.pairs": "data.translation_pairs",
    "data.pieces": "data.pretokens",
    "data.ratings": "data.interactions",
    "data.ratings_files": "data.interaction_files",
    "data.tagged": "data.tagged_sentences",
    "data.world.facts": "data.world.ground_truth",
    "data.world.labelled": "data.world.labeled",
    "data.world.truth": "data.world.evaluation_sets",
    "finetuning.answer": "finetuning.question_answerer",
    "finetuning.classify": "finetuning.text_classifier",
    "finetuning.regress": "finetuning.text_regressor",
    "finetuning.sentence": "finetuning.sentence_encoder",
    "finetuning.tags": "finetuning.token_classifier",
    "maps.keeping": "maps.layout_files",
    "studies.contender": "studies.compared_models",
    "studies.compared_model": "studies.compared_models",  # what the name below makes of an import
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
    "tests/data/test_cooccur.py": "tests/data/test_cooccurrence.py",
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


#: Files that use `firth.data.readers`.
READERS = (
    *(
        f"src/firth/data/{name}.py"
        for name in ("corpus", "graph_files", "interaction_files", "labeled_texts", "questions")
    ),
    *(f"src/firth/data/{name}.py" for name in ("readers", "table_files", "tagged_sentences", "translation_pairs")),
    *("src/firth/server/workbench/data.py", "src/firth/server/workspace.py"),
    *(f"src/firth/cli/{name}.py" for name in ("evaluate", "info", "sweep")),
)
#: Tests that look into the quantized rows of a segment.
INDEX_TESTS = ("tests/index/*", "tests/kernels/test_search.py")

NAMES = (
    Name("Pooled", "EmbeddedTexts"),
    Name("pool_windows", "embed_batches"),
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
    Name("count_pieces", "count_pretokens"),
    Name("find_answers", "find_answer_spans"),
    Name("labelled_rows", "labeled_rows"),
    Name("read_labelled", "read_labeled_texts"),
    Name("tell_about", "report_duplicates"),
    Name("tell_balance", "report_label_balance"),
    Name("tell_found", "report_answer_problems"),
    Name(
        "place_of", "answer_span", files=("src/firth/data/questions.py", "tests/finetuning/test_question_answering.py")
    ),
    Name("kind_of", "format_and_compression", files=READERS),
    Name("opened", "open_decompressed", files=READERS),
    Name("no_row", "csv_row_error", files=READERS),
    Name(
        "not_utf8", "invalid_utf8_note", files=("src/firth/data/*", "src/firth/cli/words.py", "src/firth/cli/index.py")
    ),
    Name(
        "opened",
        "corpus_or_token_lists",
        files=("src/firth/words/word_model.py", "src/firth/data/token_lists.py", "src/firth/data/tokens.py"),
    ),
    Name("opened", "create_file", files=("src/firth/words/glove_training.py", "src/firth/data/cooccur*.py")),
    Name("mapped", "map_array", files=("src/firth/words/glove_training.py", "src/firth/data/cooccur*.py")),
    Name("opened", "open_unzipped", files=("src/firth/formats/*",)),
    Name("mapped", "lazy_vectors", files=("src/firth/formats/*",)),
    Name("Encoded", "Encoding", files=("src/firth/data/subword_tokenizer.py", "src/firth/cli/tokenizer.py")),
    Name(
        "Examples", "EncodedExamples", files=("src/firth/data/labeled_texts.py", "src/firth/documents/classifier_*.py")
    ),
    Name("SpreadRows", "SparseRows"),
    Name("entities", "entity_spans", files=("src/firth/data/*", "*token_classification.py")),
    Name("places_of", "position_ids", files=("src/firth/*", "tests/*", "benchmarks/*")),
    Name("chosen_engine", "resolve_engine"),
    Name("Mirror", "TiedDecoder", files=("src/firth/tables/*", "src/firth/nets/*", "tests/*")),
    Name("Looking", "TracesAttention", files=("src/firth/transformers/*",)),
    Name("Looked", "AttentionTrace", files=("src/firth/transformers/*",)),
    Name("watched", "traced_copy", files=("src/firth/nets/*", "src/firth/transformers/*", "tests/nets/*")),
    Name("noise_exponent", "negative_exponent", quoted=True),
    Name("batch_rows", "batch_size", quoted=True),
    Name(
        "weighed",
        "weighted",
        files=("src/firth/documents/*", "src/firth/cli/embed.py", "tests/documents/*", "benchmarks/small_data.py"),
        quoted=True,
    ),
    Name("drawn_table", "random_table"),
    Name("Card", "GPUTables"),
    Name("OnCard", "GPULoop"),
    Name("Gradient", "GradientLoop"),
    Name("Slice", "SliceResult", without=("*onnx_export*",)),
    Name("Verdict", "BaselineComparison"),
    Name("label_verdict", "compare_labels"),
    Name("number_verdict", "compare_numbers"),
    Name("texts_verdict", "compare_texts"),
    Name("learner", "torch_module"),
    Name(
        "SPECIAL",
        "SPECIAL_TOKENS",
        ("src/firth/training/network_options.py", "*/translation_model.py", "*/test_translation.py"),
    ),
    Name(
        "Weights",
        "TfIdf",
        ("src/firth/training/baselines.py", "*/contrastive_training.py", "tests/training/test_baselines.py"),
    ),
    Name("ENOUGH", "MIN_HELD_OUT_ROWS", ("src/firth/training/baselines.py", "*/contrastive_training.py")),
    Name("least_rows", "min_rows", quoted=True),
    Name("takes_gaps", "accepts_missing", quoted=True),
    Name("judged_last", "final_evaluation_size"),
    Name("held_out_figures", "latest_evaluation"),
)

#: Methods whose old name is a plain word: renamed where they are called after a dot, and where they are defined.
MEMBERS = (
    Name(
        "figures",
        "metrics",
        (
            "src/firth/*_training*",
            "src/firth/training/*",
            "src/firth/finetuning/*",
            "src/firth/documents/*",
            "src/firth/transformers/*",
            "tests/training/*",
            "tests/finetuning/*",
            "benchmarks/*",
        ),
    ),
    Name(
        "judge",
        "evaluate_held_out",
        (
            "src/firth/training/*",
            "src/firth/finetuning/*",
            "tests/training/*",
            "tests/finetuning/*",
            "benchmarks/bert_scratch.py",
        ),
    ),
    Name("told", "progress_metrics", ("src/firth/training/*", "src/firth/finetuning/*_loop*", "src/firth/words/*")),
    Name("trouble", "divergence_cause", ("src/firth/*",)),
    Name(
        "tell",
        "add_notes",
        (
            "src/firth/training/baselines.py",
            "src/firth/finetuning/*",
            "src/firth/documents/*",
            "tests/training/test_baselines.py",
        ),
    ),
    Name(
        "odd",
        "outliers",
        ("src/firth/tables/autoencoder_model.py", "src/firth/cli/reconstruct.py", "tests/tables/*", "docs/*"),
    ),
)
#: Attributes, renamed after a dot.
ATTRIBUTES = (
    Name(
        "card",
        "gpu_tables",
        ("src/firth/graphs/*", "src/firth/words/*", "src/firth/training/*", "benchmarks/gpu_words.py"),
    ),
    Name("Found", "SearchResult", files=("src/firth/kernels/*", "src/firth/index/*", "tests/kernels/test_search.py")),
    Name("Sketch", "QuantizedRows", files=("src/firth/kernels/*", "src/firth/index/*", "tests/kernels/test_search.py")),
    Name("sketch", "quantized", files=("src/firth/kernels/search.py", "src/firth/index/*", *INDEX_TESTS)),
    Name("sketch_rows", "quantize_rows"),
    Name("sketch_twin", "quantize_twin"),
    Name("Searched", "SegmentPostings"),
    Name(
        "words_of",
        "word_tokens",
        files=("src/firth/index/*", "*/workbench/search.py", "*/cli/search.py", "*/groups.py"),
    ),
    Name("fused", "reciprocal_rank_fusion", files=("src/firth/index/*", "tests/index/*", "docs/search.md")),
    Name("plot_places", "plot_positions", quoted=True),
    Name("without_marks", "without_special_tokens"),
    Name("place_of", "head_name", files=("*/maps/*attention.py", "*/cli/attention.py")),
    Name("chosen", "select_weights", files=("*/maps/*attention.py", "*/cli/attention.py")),
    Name("MARKS", "SPECIAL_TOKENS", files=("*/maps/attention.py", "*/workbench/attention.py")),
    Name("labels_of", "occurrence_labels", files=("*/maps/senses.py", "*/cli/senses.py", "*/workbench/senses.py")),
    Name("marked", "highlight_word", files=("*/maps/senses.py", "*/cli/senses.py")),
    Name("ways_of", "layer_trajectories"),
    Name("about", "metadata", files=("*/cli/index.py", "*/cli/search.py", "*/cli/info.py", "*/server/models.py")),
    Name("Squeezed", "Compressed"),
    Name("neighbors_kept", "neighbor_overlap"),
    Name("told_apart", "two_sample_auc", quoted=True),
    Name("Contender", "ComparedModel"),
    Name("contenders", "compared_models", files=("src/firth/studies/*", "tests/studies/*")),
    Name("contender", "compared_model", files=("src/firth/studies/*", "tests/studies/*")),
    Name("Facts", "ModelMetadata", files=("src/firth/studies/*", "tests/studies/*")),
    Name("labelled_task", "labeled_task"),
    Name("are_alike", "are_indistinguishable"),
    Name("parsed_try", "parse_range"),
    Name("NOT_ASKED", "NOT_COMPARED"),
    Name("MOST_CHARACTERS", "MAX_CHARACTERS"),
    Name("MOST_GROUP", "MAX_GROUP"),
    Name("MOST_TAGS", "MAX_TAGS"),
    Name("MOST_WINDOW", "MAX_WINDOW"),
    Name("FEWEST_TRIES", "MIN_TRIES"),
    Name("chosen_isa", "active_isa"),
    Name("Labeller", "LabelPredictor"),
    Name("Found", "SearchResult", files=("src/firth/index/*", "*kernels/*search.py")),
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
QUALIFIED = {
    "size.places": "size.max_positions",
    "net.following": "net.next_sentence",
    "model.pool": "model.embed_with_counts",
}
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
    for name, call in [*((name, r"(?=\()") for name in MEMBERS), *((name, "") for name in ATTRIBUTES)]:
        if fits(file, name.files):
            text = re.sub(rf"((?<=\w)\.|(?<=\))\.|\bdef ){name.old}\b{call}", rf"\g<1>{name.new}", text)
    for old, new in QUALIFIED.items():
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
