"""How good vectors are: analogies, word similarity, node classification, neighbour tables."""

from firth.evaluate.analogy import AnalogyResult, Score, Section, analogies, common_questions, read_questions
from firth.evaluate.nodes import NodeResult, node_classification, read_labels
from firth.evaluate.similarity import Pair, SimilarityResult, read_pairs, word_similarity
from firth.evaluate.tables import Neighbors, NeighborTable, neighbor_table

__all__ = [
    "AnalogyResult",
    "NeighborTable",
    "Neighbors",
    "NodeResult",
    "Pair",
    "Score",
    "Section",
    "SimilarityResult",
    "analogies",
    "common_questions",
    "neighbor_table",
    "node_classification",
    "read_labels",
    "read_pairs",
    "read_questions",
    "word_similarity",
]
