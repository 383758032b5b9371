"""How good models are: analogies, word similarity, neighbour tables, labels of texts and of nodes, recommendations,
compression."""

from firth.evaluate.analogy import AnalogyResult, Score, Section, analogies, common_questions, read_questions
from firth.evaluate.compression import (
    CompressionResult,
    Squeezed,
    compression,
    independent_rows,
    lost_variance,
    neighbors_kept,
    probe,
    two_sample,
)
from firth.evaluate.labels import LabelResult, LabelScore, classification
from firth.evaluate.nodes import NodeResult, node_classification, read_labels
from firth.evaluate.recommendation import RatingResult, RecommendationResult, rating_errors, recommendations
from firth.evaluate.similarity import Pair, SimilarityResult, read_pairs, word_similarity
from firth.evaluate.tables import Neighbors, NeighborTable, neighbor_table

__all__ = [
    "AnalogyResult",
    "CompressionResult",
    "LabelResult",
    "LabelScore",
    "NeighborTable",
    "Neighbors",
    "NodeResult",
    "Pair",
    "RatingResult",
    "RecommendationResult",
    "Score",
    "Section",
    "SimilarityResult",
    "Squeezed",
    "analogies",
    "classification",
    "common_questions",
    "compression",
    "independent_rows",
    "lost_variance",
    "neighbor_table",
    "neighbors_kept",
    "node_classification",
    "probe",
    "rating_errors",
    "read_labels",
    "read_pairs",
    "read_questions",
    "recommendations",
    "two_sample",
    "word_similarity",
]
