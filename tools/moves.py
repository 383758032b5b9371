"""Moves modules to where they belong and rewrites every mention of them; nothing else.

    python tools/moves.py        # in a checkout; does nothing where everything has moved already

A branch that was made before the moves is brought up to date by running this on it before it is merged. The table below
says what moved: `learners/` and `methods/` became one folder per family of methods.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Folder -> {old module, below src/firth: new file name}.
MODULES: dict[str, dict[str, str]] = {
    "training": {  # what several families share
        "learners.adamw": "optimizers",
        "learners.baselines": "baselines",
        "learners.cuda": "gpu_tables",
        "learners.device": "device",
        "learners.gradient": "gradient_loop",
        "learners.loop": "epoch_loop",
        "learners.network": "network_options",
        "learners.on_gpu": "gpu_choice",
        "learners.rows": "row_batches",
        "learners.svd": "truncated_svd",
        "learners.weights": "weight_files",
    },
    "words": {
        "methods.predicting.skipgram": "skipgram",
        "methods.predicting.cbow": "cbow",
        "methods.predicting.glove": "glove",
        "methods.predicting.fasttext": "fasttext",
        "methods.counting.pmi": "pmi",
        "learners.associations": "association_measures",
        "learners.fasttext": "fasttext_model",
        "learners.glove": "glove_training",
        "learners.pairs": "pair_counting",
        "learners.predict": "window_training",
        "learners.predicted": "window_model",
        "learners.quantize": "fasttext_quantization",
        "learners.subwords": "subword_training",
        "learners.words": "word_model",
        "learners.words_cuda": "window_training_gpu",
    },
    "documents": {
        "methods.counting.counts": "counts",
        "methods.counting.tfidf": "tfidf",
        "methods.counting.lsa": "lsa",
        "methods.predicting.doc2vec": "doc2vec",
        "methods.predicting.fasttext_classifier": "fasttext_classifier",
        "learners.classifier": "classifier_model",
        "learners.classify": "classifier_training",
        "learners.doc2vec": "doc2vec_training",
        "learners.documents": "document_matrix",
    },
    "graphs": {
        "methods.graphs.deepwalk": "deepwalk",
        "methods.graphs.node2vec": "node2vec",
        "learners.walks": "walk_training",
        "learners.walks_cuda": "walk_training_gpu",
    },
    "recommenders": {
        "methods.people.als": "als",
        "methods.people.bpr": "bpr",
        "methods.people.item2vec": "item2vec",
        "methods.people.multdae": "multdae",
        "methods.people.multvae": "multvae",
        "methods.people.rating_factors": "rating_factors",
        "learners.als": "als_training",
        "learners.baskets": "item2vec_training",
        "learners.bpr": "bpr_training",
        "learners.people": "recommender_model",
        "learners.users": "user_autoencoder",
    },
    "tables": {
        "methods.counting.binary": "binary",
        "methods.counting.label": "label",
        "methods.counting.normalize": "normalize",
        "methods.counting.onehot": "onehot",
        "methods.counting.pca": "pca",
        "methods.counting.standardize": "standardize",
        "methods.compressing.autoencoder": "autoencoder",
        "methods.compressing.vae": "vae",
        "learners.cells": "network_inputs",
        "learners.columns": "column_codes",
        "learners.compress": "autoencoder_training",
        "learners.compressed": "autoencoder_model",
        "learners.encoders": "encoder_model",
        "learners.latent": "latent_space",
        "learners.straight": "pca_initialization",
        "learners.tables": "table_model",
    },
    "transformers": {
        "methods.attending.bert": "bert",
        "methods.attending.gpt": "gpt",
        "methods.attending.seq2seq": "seq2seq",
        "methods.distilling.distil": "distil",
        "learners.beam": "beam_search",
        "learners.bert": "bert_model",
        "learners.bert_files": "huggingface_bert",
        "learners.contextual": "contextual_words",
        "learners.distil": "distillation",
        "learners.encoding": "text_encoder",
        "learners.gpt": "gpt_model",
        "learners.gpt2": "huggingface_gpt2",
        "learners.language": "language_modeling",
        "learners.looking": "attention_trace",
        "learners.masking": "masking",
        "learners.onnx_files": "onnx_export",
        "learners.packing": "packing",
        "learners.pickled": "pickled_weights",
        "learners.pooling": "pooling",
        "learners.pretrain": "bert_pretraining",
        "learners.reading": "word_spans",
        "learners.sentence_files": "sentence_transformers_folder",
        "learners.sentence_pairs": "next_sentence_pairs",
        "learners.static": "static_model",
        "learners.translate": "translation_training",
        "learners.translator": "translation_model",
        "learners.whitening": "whitening",
    },
    "finetuning": {
        "methods.transferring.answer": "answer",
        "methods.transferring.classify": "classify",
        "methods.transferring.regress": "regress",
        "methods.transferring.sentence": "sentence",
        "methods.transferring.tags": "tags",
        "learners.answering": "question_answering",
        "learners.contrast": "contrastive_training",
        "learners.tagging": "token_classification",
        "learners.texts": "text_classification",
        "learners.transfer": "finetuning_options",
        "learners.tuned": "finetuned_model",
        "learners.tuning": "finetuning_loop",
    },
    "": {"learners.files": "model_files"},
}
#: Tests, below tests/.
TESTS: dict[str, dict[str, str]] = {
    "training": {
        "learners/test_baselines": "test_baselines",
        "learners/test_cuda": "test_gpu_tables",
        "learners/test_gradient": "test_gradient_loop",
        "learners/test_nothing_learned": "test_nothing_learned",
        "learners/test_svd": "test_truncated_svd",
        "learners/test_threads": "test_threads",
    },
    "words": {
        "learners/test_associations": "test_association_measures",
        "learners/test_fasttext": "test_fasttext_model",
        "learners/test_predict": "test_window_training",
        "learners/test_predicted": "test_window_model",
        "learners/test_token_lists": "test_token_lists",
        "learners/test_words": "test_word_model",
        "methods/counting/test_pmi": "test_pmi",
        "methods/predicting/test_fasttext": "test_fasttext",
        "methods/predicting/test_glove": "test_glove",
    },
    "documents": {
        "learners/test_classify": "test_classifier_training",
        "learners/test_classify_files": "test_classifier_files",
        "learners/test_documents": "test_document_matrix",
        "learners/test_lsa": "test_lsa",
        "methods/predicting/test_doc2vec": "test_doc2vec",
    },
    "graphs": {"methods/graphs/test_walking": "test_walks"},
    "recommenders": {
        "methods/people/conftest": "conftest",
        "methods/people/test_factors": "test_factors",
        "methods/people/test_people": "test_recommenders",
        "methods/people/test_users": "test_user_autoencoder",
    },
    "tables": {
        "learners/test_latent": "test_latent_space",
        "learners/test_straight": "test_pca_initialization",
        "methods/compressing/test_autoencoder": "test_autoencoder",
        "methods/compressing/test_vae": "test_vae",
        "methods/test_encoders": "test_encoders",
        "methods/test_pca": "test_pca",
    },
    "transformers": {
        "learners/test_beam": "test_beam_search",
        "learners/test_bert_files": "test_huggingface_bert",
        "learners/test_contextual": "test_contextual_words",
        "learners/test_distil": "test_distillation",
        "learners/test_language": "test_language_modeling",
        "learners/test_looking": "test_attention_trace",
        "learners/test_masking": "test_masking",
        "learners/test_onnx": "test_onnx_export",
        "learners/test_pretrain": "test_bert_pretraining",
        "learners/test_sentence_pairs": "test_next_sentence_pairs",
        "learners/test_sentences": "test_sentence_vectors",
        "learners/test_translate": "test_translation",
        "methods/attending/test_bert_world": "test_bert_synthetic",
        "methods/attending/test_seq2seq": "test_seq2seq",
        "methods/test_gpt": "test_gpt",
    },
    "finetuning": {
        "learners/conftest": "conftest",
        "learners/test_answering": "test_question_answering",
        "learners/test_columns_beside": "test_columns_beside_text",
        "learners/test_contrast": "test_contrastive_training",
        "learners/test_tagging": "test_token_classification",
        "learners/test_tuning": "test_finetuning_loop",
        "learners/test_world_tasks": "test_synthetic_tasks",
    },
}
TEXT = (".py", ".pyi", ".md", ".toml", ".txt", ".cpp", ".h", ".html", ".svelte", ".ts")
LEFT = ("tools/moves.py", "CHANGELOG.md", "benchmarks/LOG.md")  # tables and history keep the old names


def new_names() -> dict[str, str]:
    """Old dotted name below `firth` -> new one."""
    return {
        old: f"{folder}.{name}" if folder else name for folder, files in MODULES.items() for old, name in files.items()
    }


def move(old: Path, new: Path) -> None:
    if old.exists():
        new.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", str(old), str(new)], check=True, cwd=ROOT)


def move_files() -> None:
    source, tests = ROOT / "src" / "firth", ROOT / "tests"
    for old, new in new_names().items():
        move(source / f"{old.replace('.', '/')}.py", source / f"{new.replace('.', '/')}.py")
    for folder in filter(None, MODULES):
        move(source / "methods" / f"{folder}" / "__init__.py", source / folder / "__init__.py")
        (source / folder / "__init__.py").touch()
    for folder, files in TESTS.items():
        for old, name in files.items():
            move(tests / f"{old}.py", tests / folder / f"{name}.py")
    left = [*source.glob("methods/**/__init__.py"), source / "learners" / "__init__.py"]
    subprocess.run(["git", "rm", "-qf", "--ignore-unmatch", *map(str, left)], check=True, cwd=ROOT)
    subprocess.run(["git", "add", "-A"], check=True, cwd=ROOT)


def rewrite(text: str, names: dict[str, str]) -> str:
    """`text` with the new names: dotted, as paths, and in `from firth.learners import x`."""

    def imported(match: re.Match[str]) -> str:
        lines = []
        for part in match[3].split(","):
            name, _, alias = (word.strip() for word in part.partition(" as "))
            package, _, module = names[f"{match[2]}.{name}"].rpartition(".")
            lines.append(
                f"{match[1]}from firth.{package} import {module} as {alias or name}".replace("firth. ", "firth ")
            )
        return "\n".join(lines)

    packages = sorted({old.rpartition(".")[0] for old in names}, key=len, reverse=True)
    choice = "|".join(map(re.escape, packages))
    text = re.sub(rf"^([ \t]*)from firth\.({choice}) import ([\w, ]+)$", imported, text, flags=re.M)
    for old, new in sorted(names.items(), key=lambda pair: -len(pair[0])):
        text = re.sub(rf"\bfirth\.{re.escape(old)}\b", f"firth.{new}", text)
        paths = re.escape(old.replace(".", "/"))
        text = re.sub(rf"(?<![\w/]){paths}\.py\b", f"{new.replace('.', '/')}.py", text)
        text = re.sub(rf"(src/firth/){paths}\.py\b", rf"\g<1>{new.replace('.', '/')}.py", text)
        if old.startswith("learners."):
            short = old.partition(".")[2]
            text = re.sub(rf'\b(learner|model_in)\("{short}"', rf'\1("{new}"', text)
    return text


def main() -> None:
    move_files()
    names = new_names()
    files = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split("\n")
    for file in files:
        path = ROOT / file
        if path.suffix in TEXT and file not in LEFT and path.is_file():
            before = path.read_text(encoding="utf-8")
            after = rewrite(before, names)
            if after != before:
                path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
