"""How good models are: analogies, word similarity, neighbour tables, labels of texts."""

from firth.evaluate.analogy import AnalogyResult, Score, Section, analogies, common_questions, read_questions
from firth.evaluate.labels import LabelResult, LabelScore, classification
from firth.evaluate.similarity import Pair, SimilarityResult, read_pairs, word_similarity
from firth.evaluate.tables import Neighbors, NeighborTable, neighbor_table

__all__ = [
    "AnalogyResult",
    "LabelResult",
    "LabelScore",
    "NeighborTable",
    "Neighbors",
    "Pair",
    "Score",
    "Section",
    "SimilarityResult",
    "analogies",
    "classification",
    "common_questions",
    "neighbor_table",
    "read_pairs",
    "read_questions",
    "word_similarity",
]
