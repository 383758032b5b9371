"""`firth evaluate TASK MODEL… DATA`: metrics of models on test data, one command per task."""

from __future__ import annotations

from firth.cli.groups import lazy_group

command = lazy_group(
    __name__,
    """Measure how good models are on test data. Each task has a command with its own options.

    Several models may be given before DATA; each is measured on the same data.
    """,
    {
        "analogies": "Word analogies: accuracy on questions such as questions-words.txt.",
        "similarity": "Word similarity: correlation with human scores (WS-353, SimLex, …).",
        "sentences": "Sentence similarity: correlation with human scores (STS-B, …).",
        "classification": "Labels or numbers predicted for labeled texts.",
        "answers": "Question answering: exact match and F1, as in SQuAD.",
        "features": "A linear model or MLP on the vectors of texts, cross-validated.",
        "nodes": "Node labels predicted by a linear model on node vectors.",
        "recommendations": "Recommended items: recall, NDCG and MAP beside baselines.",
        "ratings": "Errors of predicted ratings.",
        "translation": "BLEU of translations.",
        "bias": "Associations of words with attributes (WEAT), with permutation p-values.",
        "compression": "PCA, LSA, autoencoder and VAE compared on the same rows.",
    },
    "TASK MODEL… DATA [OPTIONS]",
)
