"""Texts with labels: topic, sentiment, word sense, and the span that answers a question.

Words are separated by single spaces, and the sentences of a text by " . ".
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from firth.data.world.ground_truth import GroundTruth
from firth.data.world.names import pick, sample
from firth.data.world.text import TOPIC_FRAMES, homonyms_of, opinion, sentence
from firth.data.world.words import HOMONYMS, THINGS, WORKERS


class LabeledText(NamedTuple):
    """A text and its label."""

    text: str
    label: str


class Sense(NamedTuple):
    """A sentence with a homonym, and the sense of the homonym (the name of a topic)."""

    sentence: str
    word: str
    sense: str


class Question(NamedTuple):
    """A question and the passage with the answer: `passage[start:].startswith(answer)`."""

    question: str
    passage: str
    answer: str
    start: int


def topic_document(truth: GroundTruth) -> Callable[[Random], LabeledText]:
    """Draw documents of six sentences: four on the document's topic, one on another topic, one on anything."""
    topics = tuple(truth.topics)
    words = {topic: truth.topics[topic] + homonyms_of(topic) for topic in topics}
    anything = sentence(truth)

    def draw(random: Random) -> LabeledText:
        topic, other = sample(random, topics, 2)
        abouts = (topic,) * 4 + (other,)
        parts = [pick(random, TOPIC_FRAMES).format(*sample(random, words[about], 3)) for about in abouts]
        parts.append(anything(random))
        return LabeledText(" . ".join(sample(random, parts, len(parts))), topic)

    return draw


def review(truth: GroundTruth) -> Callable[[Random], LabeledText]:
    """Draw reviews of one to three opinions that agree; some are negated ("not dreadful"), so words do not suffice."""

    def draw(random: Random) -> LabeledText:
        praise = random.random() < 0.5
        opinions = [opinion(random, truth, praise) for _ in range(1 + int(random.random() * 3))]
        return LabeledText(" . ".join(opinions), "positive" if praise else "negative")

    return draw


def sense(truth: GroundTruth) -> Callable[[Random], Sense]:
    """Draw sentences with a homonym among words of one of its topics; nothing else indicates the sense."""
    words = tuple(HOMONYMS)

    def draw(random: Random) -> Sense:
        word = pick(random, words)
        topic = pick(random, HOMONYMS[word])
        slots = sample(random, [word, *sample(random, truth.topics[topic], 2)], 3)
        return Sense(pick(random, TOPIC_FRAMES).format(*slots), word, topic)

    return draw


# question, statement, and the slot of the statement that is the answer
ABOUT_COUNTRIES: tuple[tuple[str, str, str], ...] = (
    ("what is the capital of {country}", "the capital of {country} is {capital}", "capital"),
    ("who is the king of {country}", "the king of {country} is {king}", "king"),
    ("who is the queen of {country}", "{queen} is the queen of {country}", "queen"),
    ("which forest lies near {capital}", "near {capital} lies the forest of {forest}", "forest"),
    ("of which country is {capital} the capital", "{capital} is the capital of {country}", "country"),
)
ABOUT_PERSONS: tuple[tuple[str, str, str], ...] = (
    ("where does {person} live", "{person} lives in the city of {capital}", "capital"),
    ("what did {person} buy", "at the market {person} bought the {thing}", "thing"),
    ("what is the work of {person}", "{person} works as a {worker}", "worker"),
    ("who is the friend of {person}", "the friend of {person} is {friend}", "friend"),
)


def question(truth: GroundTruth) -> Callable[[Random], Question]:
    """Draw questions: half about countries, half about persons, whose facts are new in every passage.

    A passage makes each kind of statement about two countries or persons, so the answer depends on which one is asked
    about.
    """
    return lambda random: _of_countries(random, truth) if random.random() < 0.5 else _of_persons(random, truth)


def _of_countries(random: Random, truth: GroundTruth) -> Question:
    countries = sample(random, truth.countries, 2)
    return _ask(random, ABOUT_COUNTRIES, [country.slots for country in countries])


def _of_persons(random: Random, truth: GroundTruth) -> Question:
    people = sample(random, truth.persons, 4)
    homes = sample(random, truth.countries, 2)
    things, workers = sample(random, THINGS, 2), sample(random, WORKERS, 2)
    stories = [
        {
            "person": people[i],
            "friend": people[2 + i],
            "capital": homes[i].capital,
            "thing": things[i],
            "worker": workers[i],
        }
        for i in range(2)
    ]
    return _ask(random, ABOUT_PERSONS, stories)


def _ask(random: Random, kinds: tuple[tuple[str, str, str], ...], subjects: list[dict[str, str]]) -> Question:
    facts_stated = sample(random, kinds, 3)
    statements = sample(
        random, [(kind, subject) for kind in facts_stated for subject in subjects], 2 * len(facts_stated)
    )
    asked_index = int(random.random() * len(statements))
    (text, statement, slot), subject = statements[asked_index]
    sentences = [kind[1].format_map(about) for kind, about in statements]
    before = sum(len(sentence) + len(" . ") for sentence in sentences[:asked_index])
    # The position of the slot itself, because the same word may occur earlier in another slot.
    start = before + len(statement[: statement.index(f"{{{slot}}}")].format_map(subject))
    return Question(text.format_map(subject), " . ".join(sentences), subject[slot], start)
