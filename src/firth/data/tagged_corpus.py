"""`TaggedCorpus`: documents whose records have columns of tags."""

from __future__ import annotations

from firth.core.data import FileOption
from firth.data.corpus import Corpus


class TaggedCorpus(Corpus):
    """A corpus for methods that give tags vectors of their own: `tags` can be named in commands too.

    TaggedCorpus("posts.jsonl", column="text", tags=["author", "topics"])
    """

    file_options = (
        *Corpus.file_options,
        FileOption(
            "tags", "Columns with a tag or a list of tags, as in author,topics; tags get vectors too.", "columns"
        ),
    )
