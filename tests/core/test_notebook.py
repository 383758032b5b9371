"""What notebooks show: short reprs and HTML tables in which everything is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

import numpy as np
import pytest

import firth
from firth import evaluate
from firth.core.notebook import CELL, html_lines, html_table, short_cell
from firth.data.tokens import read_tokens

HOSTILE = '<script>alert("x")</script> & <b'
ALLOWED = {"table", "tr", "th", "td", "p"}
WITHOUT_DATA = ("model", "NodeResult", "NumberResult", "AnswerResult", "FeatureResult", "RatingResult")
OTHER = ["the king sleeps", "a sword and a shield"]


class ParsedHtml(HTMLParser):
    """Collects tags and text, and checks that each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen, self.open, self.text = set[str](), list[str](), ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def results():
    vectors = firth.Vectors([HOSTILE, "king", "sword"], np.eye(3, 8))
    index = firth.Index.create(dim=8)
    index.add([HOSTILE, "king"], np.eye(2, 8), {"text": [HOSTILE, "a king"]})
    words = firth.SkipGram(dim=4, epochs=1, min_count=1, tokenizer="whitespace").fit([HOSTILE, *OTHER])
    labels = firth.FastTextClassifier(dim=4, epochs=1).fit([(HOSTILE, HOSTILE), ("the king", "b")] * 5)
    return {
        "Vectors": vectors,
        "Hits": vectors.neighbors("king", 2),
        "Index": index,
        "search": index.search(np.eye(2, 8)[0], 2),
        "model": words,
        "LabelResult": evaluate.classification(labels, [(HOSTILE, HOSTILE), ("the king", "b")]),
        "SimilarityResult": evaluate.word_similarity(
            vectors, [evaluate.Pair(HOSTILE, "king", 1.0), evaluate.Pair("king", f"no {HOSTILE}", 2.0)]
        ),
        "NodeResult": evaluate.NodeResult(0.5, (0.5,), (0.5,), 10, 2, 0),
        "NumberResult": evaluate.NumberResult(3, 0.5, 0.5, 1.0),
        "AnswerResult": evaluate.AnswerResult(3, 1, 0.5, 0.5),
        "FeatureResult": evaluate.FeatureResult("logistic", 9, 3, 3, {"accuracy": (0.5, 0.1)}, {"accuracy": 0.5}),
        "RatingResult": evaluate.RatingResult(1.0, 0.5, 1.5, 1.0, 10, 0),
        "Comparison": firth.compare({HOSTILE: words, "other": vectors}),
        "Corpus": firth.Corpus([HOSTILE, *OTHER]),
        "Table": firth.Table({HOSTILE: [HOSTILE, "b"], "n": [1.5, None]}),
        "Graph": firth.Graph([(HOSTILE, "b"), ("b", "c")]),
        "Interactions": firth.Interactions([(HOSTILE, HOSTILE), ("bob", "jazz")]),
        "Examples": firth.Examples({"text": [HOSTILE, "b"], "label": [HOSTILE, "c"]}),
        "LabeledTexts": firth.LabeledTexts([(HOSTILE, HOSTILE), ("a text", "b")]),
        "TranslationPairs": firth.TranslationPairs([(HOSTILE, "b")]),
        "Questions": firth.Questions({"question": [HOSTILE], "passage": ["b c"], "answer": ["c"]}),
        "SimilarPairs": firth.SimilarPairs({"text": [HOSTILE, "b"], "other": ["c", "d"]}, text="text", other="other"),
        "TaggedSentences": firth.TaggedSentences([([HOSTILE, "b"], ["O", HOSTILE])]),
        "Tokens": read_tokens(firth.Corpus([HOSTILE, *OTHER]), tokenizer="whitespace", min_count=1),
        "Vocabulary": firth.Vocabulary([HOSTILE, "b"], [3, 1]),
        "Cooccurrence": firth.Cooccurrence.count(firth.Tokens.from_lists([[HOSTILE, "b"], ["b", "c"]], min_count=1)),
    }


@pytest.fixture(scope="module")
def shown():
    return results()


@pytest.mark.filterwarnings("ignore::firth.FirthWarning")
def test_everything_is_escaped_and_shown(shown):
    for name, value in shown.items():
        page = value._repr_html_()
        parsed = ParsedHtml(page)
        assert parsed.seen <= ALLOWED, name
        assert "<script" not in page.lower() and "<b" not in page, name
        assert len(page) < 10_000, name
        if name not in WITHOUT_DATA:
            assert "alert" in parsed.text, name


def test_reprs_are_short(shown):
    for name, value in shown.items():
        text = repr(value)
        assert text and " object at 0x" not in text and len(text) < 1000, name


def test_a_stream_is_not_read_to_show_it():
    read = list[str]()

    def stream() -> Iterator[str]:
        for text in OTHER:
            read.append(text)
            yield text

    corpus = firth.Corpus(stream())
    assert "stream" in corpus._repr_html_() and read == []
    assert [document.text for document in corpus] == OTHER == read


def test_long_cells_and_wide_tables_are_cut():
    assert short_cell("word " * 100).endswith("…") and len(short_cell("word " * 100)) == CELL
    assert short_cell(None) == "" and short_cell(1 / 3) == "0.3333" and short_cell("a\nb") == "a b"
    wide = firth.Table(np.zeros((100, 50)))._repr_html_()
    assert wide.count("<tr>") == 6 and wide.count("…") >= 6


def test_html_helpers():
    assert html_table(["a"], [["<"]], numbers=(0,)) == (
        '<table><tr><th style="text-align:right">a</th></tr><tr><td style="text-align:right">&lt;</td></tr></table>'
    )
    assert html_lines("a\n\nb", "", "<") == "<p>a</p><p>b</p><p>&lt;</p>"
