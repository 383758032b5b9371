"""How good models are: analogies, word similarity, neighbour tables, labels of texts and of nodes, recommendations."""

from firth.evaluate.analogy import AnalogyResult, Score, Section, analogies, common_questions, read_questions
from firth.evaluate.labels import LabelResult, LabelScore, classification
from firth.evaluate.nodes import NodeResult, node_classification, read_labels
from firth.evaluate.recommendation import RatingResult, RecommendationResult, rating_errors, recommendations
from firth.evaluate.sentences import (
    PoolingChoice,
    SentencePair,
    choose_pooling,
    read_sentence_pairs,
    sentence_similarity,
)
from firth.evaluate.similarity import Pair, SimilarityResult, read_pairs, word_similarity
from firth.evaluate.tables import Neighbors, NeighborTable, neighbor_table

__all__ = [
    "AnalogyResult",
    "LabelResult",
    "LabelScore",
    "NeighborTable",
    "Neighbors",
    "NodeResult",
    "Pair",
    "PoolingChoice",
    "RatingResult",
    "RecommendationResult",
    "Score",
    "Section",
    "SentencePair",
    "SimilarityResult",
    "analogies",
    "choose_pooling",
    "classification",
    "common_questions",
    "neighbor_table",
    "node_classification",
    "rating_errors",
    "read_labels",
    "read_pairs",
    "read_questions",
    "read_sentence_pairs",
    "recommendations",
    "sentence_similarity",
    "word_similarity",
]
