"""Studies of several models: comparison on your data, search for options, alignment of vector spaces."""

from firth.studies.alignment import Aligned, align, read_word_pairs
from firth.studies.compare import compare
from firth.studies.comparison import Comparison, Measure, Score
from firth.studies.documents import Drawn, draw
from firth.studies.groups import Groups, groups
from firth.studies.page import write_report
from firth.studies.space import Between
from firth.studies.sweep_result import Sweep, Trial
from firth.studies.sweeping import sweep
from firth.studies.tasks import (
    Task,
    analogy_task,
    document_task,
    labeled_task,
    node_task,
    rating_task,
    sentence_task,
    similarity_task,
)

__all__ = ["Aligned", "Comparison", "Drawn", "Measure", "Score", "align", "compare", "draw", "read_word_pairs"]
__all__ += ["Groups", "groups", "write_report"]
__all__ += ["Between", "Sweep", "Task", "Trial", "analogy_task", "document_task", "labeled_task", "node_task"]
__all__ += ["rating_task", "sentence_task", "similarity_task", "sweep"]
