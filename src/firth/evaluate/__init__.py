"""How good models are: analogies, word similarity, neighbour tables, labels of texts and of nodes, recommendations."""

from firth.evaluate.analogy import AnalogyResult, Score, Section, analogies, common_questions, read_questions
from firth.evaluate.answers import AnswerResult, answers
from firth.evaluate.features import FeatureResult, features
from firth.evaluate.labels import LabelResult, LabelScore, NumberResult, classification, label_result, number_result
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
    "AnswerResult",
    "FeatureResult",
    "LabelResult",
    "LabelScore",
    "NeighborTable",
    "Neighbors",
    "NodeResult",
    "NumberResult",
    "Pair",
    "PoolingChoice",
    "RatingResult",
    "RecommendationResult",
    "Score",
    "Section",
    "SentencePair",
    "SimilarityResult",
    "analogies",
    "answers",
    "choose_pooling",
    "classification",
    "common_questions",
    "features",
    "label_result",
    "neighbor_table",
    "node_classification",
    "number_result",
    "rating_errors",
    "read_labels",
    "read_pairs",
    "read_questions",
    "read_sentence_pairs",
    "recommendations",
    "sentence_similarity",
    "word_similarity",
]
