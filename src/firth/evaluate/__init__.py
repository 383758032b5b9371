"""Evaluation of models: analogies, word and sentence similarity, neighbor tables, classification of texts and nodes,
recommendations, compression."""

from firth.evaluate.analogy import (
    AnalogyResult,
    Score,
    Section,
    analogies,
    common_questions,
    read_questions,
    right_answers,
)
from firth.evaluate.answers import AnswerResult, answers
from firth.evaluate.bias import (
    Association,
    AssociationTest,
    BiasResult,
    WordSet,
    associations,
    read_association_tests,
)
from firth.evaluate.compression import (
    Compressed,
    CompressionResult,
    compression,
    independent_rows,
    lost_variance,
    neighbor_overlap,
    probe,
    two_sample,
)
from firth.evaluate.features import FeatureResult, features
from firth.evaluate.labels import LabelResult, LabelScore, NumberResult, classification, label_result, number_result
from firth.evaluate.nodes import NodeResult, node_classification, read_labels
from firth.evaluate.parallelogram import Corner, Parallelogram, parallelogram
from firth.evaluate.recommendation import (
    RatingResult,
    RecommendationResult,
    rating_errors,
    recommendations,
    recommended,
)
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
    "Association",
    "AssociationTest",
    "BiasResult",
    "FeatureResult",
    "CompressionResult",
    "Corner",
    "LabelResult",
    "LabelScore",
    "NeighborTable",
    "Neighbors",
    "NodeResult",
    "NumberResult",
    "Pair",
    "Parallelogram",
    "PoolingChoice",
    "RatingResult",
    "RecommendationResult",
    "Score",
    "Section",
    "SentencePair",
    "WordSet",
    "SimilarityResult",
    "Compressed",
    "analogies",
    "answers",
    "associations",
    "choose_pooling",
    "classification",
    "common_questions",
    "features",
    "label_result",
    "compression",
    "independent_rows",
    "lost_variance",
    "neighbor_table",
    "neighbor_overlap",
    "node_classification",
    "number_result",
    "parallelogram",
    "probe",
    "rating_errors",
    "read_association_tests",
    "read_labels",
    "read_pairs",
    "read_questions",
    "read_sentence_pairs",
    "recommendations",
    "recommended",
    "right_answers",
    "sentence_similarity",
    "two_sample",
    "word_similarity",
]
