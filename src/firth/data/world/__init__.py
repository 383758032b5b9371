"""A synthetic corpus of any size with known ground truth, on which the methods are tested.

All text is in lower case. Words are separated by single spaces, and the sentences of a text by " . ".
"""

from firth.data.world.evaluation_sets import write_analogies
from firth.data.world.world import World

__all__ = ["World", "write_analogies"]
