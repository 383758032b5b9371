"""How good vectors are: analogies, word similarity, neighbour tables, recommendations."""

from firth.evaluate.analogy import AnalogyResult, Score, Section, analogies, common_questions, read_questions
from firth.evaluate.recommendation import RatingResult, RecommendationResult, rating_errors, recommendations
from firth.evaluate.similarity import Pair, SimilarityResult, read_pairs, word_similarity
from firth.evaluate.tables import Neighbors, NeighborTable, neighbor_table

__all__ = [
    "AnalogyResult",
    "NeighborTable",
    "Neighbors",
    "Pair",
    "RatingResult",
    "RecommendationResult",
    "Score",
    "Section",
    "SimilarityResult",
    "analogies",
    "common_questions",
    "neighbor_table",
    "rating_errors",
    "read_pairs",
    "read_questions",
    "recommendations",
    "word_similarity",
]
