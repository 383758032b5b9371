"""A small invented world with known truth, at any size: what the methods are tested on.

All text is in lower case, words separated by single spaces, the sentences of one text by " . ".
"""

from firth.data.world.evaluation_sets import write_analogies
from firth.data.world.world import World

__all__ = ["World", "write_analogies"]
