"""The synthetic corpus: its texts state the ground truth, and trivial baselines do not solve its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gensim.models import Word2Vec
from refusing import refuses

from firth.data.world import World, text, words, write_analogies
from firth.data.world.language import NOUNS, VERBS, Language

UNTUNED = 41  # a seed that no template was tuned on


@pytest.fixture(scope="module")
def world() -> World:
    return World(seed=UNTUNED)


# --- seeds -----------------------------------------------------------------------------------------------------------

STREAMS = ("sentences", "topics", "sentiment", "senses", "questions", "translations")


@pytest.mark.parametrize("source", STREAMS)
def test_streams_are_reproducible_and_shorter_ones_are_prefixes(source: str) -> None:
    def read(seed: int, n: int) -> list[object]:
        return list(getattr(World(seed=seed, size=6), source)(n))

    items = read(3, 2100)  # more than two blocks
    assert read(3, 2100) == items
    assert read(3, 1030) == items[:1030]
    assert read(4, 2100) != items
    stream = getattr(World(seed=3, size=6), source)(2100)
    assert len(stream) == 2100
    assert [stream[0], stream[1500], stream[-1], *stream[1023:1026]] == [
        *(items[0], items[1500], items[-1]),
        *items[1023:1026],
    ]
    assert list(stream) == list(stream)
    with pytest.raises(IndexError):
        stream[2100]


def test_arrays_and_tables_are_reproducible() -> None:
    def flat(seed: int) -> str:
        world = World(seed=seed)
        return repr([world.friendships(50), world.ratings(30, 20), world.rows(20), world.similarities(50)])

    assert flat(1) == flat(1)
    assert flat(1) != flat(2)


def names_of(world: World) -> set[str]:
    invented = {name for country in world.countries for name in country.slots.values()}
    return invented | set(world.ground_truth.persons)


def english_words() -> set[str]:
    tables = [words.THINGS, words.WORKERS, words.PRAISE, words.BLAME, words.REVIEWED, *words.TOPICS.values()]
    inflected = [form for row in (*words.ADJECTIVES, *words.VERBS) for form in row]
    family = [word for male, female, cues in words.FAMILY for word in (male, female, *cues)]
    return {word for table in tables for word in table} | {*inflected, *family, *words.HOMONYMS}


def test_each_seed_has_its_own_names_without_collisions() -> None:
    one, other = World(seed=1, size=40), World(seed=2, size=40)
    for world in (one, other):
        assert len(names_of(world)) == 40 * (9 + 2)  # nine names and two persons per country
        assert not names_of(world) & english_words()
    same_names = [
        a.capital == b.capital or a.king == b.king for a, b in zip(one.countries, other.countries, strict=True)
    ]
    assert not any(same_names)
    assert len(names_of(one) & names_of(other)) < 0.1 * len(names_of(one))


def test_any_size() -> None:
    for size in (2, 5000):
        world = World(seed=1, size=size)
        assert len({country.capital for country in world.countries}) == size
        for source in STREAMS:
            assert len(list(getattr(world, source)(50))) == 50
    assert len(world.analogies(most=300)["capital-country"]) == 300


INVALID: list[tuple[Callable[[], object], dict[str, object]]] = [
    (lambda: World(seed=-1), {"option": "World.seed", "minimum": 0, "got": -1}),
    (lambda: World(size=1), {"option": "World.size", "minimum": 2, "got": 1}),
    (lambda: World().sentences(-1), {"option": "n", "got": -1}),
    (lambda: World().similarities(10**6), {"option": "n", "got": 1_000_000}),
    (lambda: World().friendships(people=3, communities=5), {"option": "people", "minimum": 5, "got": 3}),
    (lambda: World().ratings(users=0), {"option": "users", "minimum": 1, "got": 0}),
    (lambda: World().rows(-1), {"option": "n", "minimum": 0, "got": -1}),
]


@pytest.mark.parametrize(("make", "values"), INVALID)
def test_invalid_arguments_are_refused(make: Callable[[], object], values: dict[str, object]) -> None:
    with refuses("invalid_value", **values):
        make()


# --- words -----------------------------------------------------------------------------------------------------------


def test_each_word_is_in_one_table() -> None:
    tables = {
        "family": {word for male, female, cues in words.FAMILY for word in (male, female, *cues)},
        "adjectives": {form for row in words.ADJECTIVES for form in row},
        "verbs": {form for row in words.VERBS for form in row},
        "things": set(words.THINGS),
        "workers": set(words.WORKERS),
        "homonyms": set(words.HOMONYMS),
        "opinions": {*words.PRAISE, *words.BLAME, *words.REVIEWED},
        **{topic: set(table) for topic, table in words.TOPICS.items()},
    }
    counts = Counter(word for table in tables.values() for word in table)
    assert [word for word, count in counts.items() if count > 1] == []
    frames = [*text.LOCATIONS, *text.STATEMENTS, *text.FAMILY_FRAMES, *text.TOPIC_FRAMES, *text.OPINIONS]
    for group in (*text.ROLES, *text.FORMS_OF_ADJECTIVES, *text.FORMS_OF_VERBS):
        frames += group
    assert {word for frame in frames for word in frame.split()} & set(counts) == {"king", "queen", "kingdom"}


def test_sentences_state_the_ground_truth(world: World) -> None:
    sentences = list(world.sentences(30_000))
    assert all(part.isalpha() and part.islower() for sentence in sentences for part in sentence.split(" "))
    distinct = set(sentences)
    for country in world.countries:
        assert f"{country.capital} is the capital of {country.country}" in distinct
        assert f"the king of {country.country} is {country.king}" in distinct
        assert f"{country.queen} is the queen of {country.country}" in distinct
    capitals, countries = ({getattr(c, name): c for c in world.countries} for name in ("capital", "country"))
    for sentence in distinct:  # nothing false is stated: names of two countries never occur together
        named = {capitals[word] for word in sentence.split() if word in capitals}
        assert len(named | {countries[word] for word in sentence.split() if word in countries}) <= 1


def analogy_accuracy(keys: list[str], matrix: np.ndarray, questions: list[tuple[str, str, str, str]]) -> float:
    """Return the accuracy of 3CosAdd over all keys except the three question words."""
    rows = {key: row for row, key in enumerate(keys)}
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    a, b, c, d = np.array([[rows[word] for word in question] for question in questions]).T
    scores = (unit[b] - unit[a] + unit[c]) @ unit.T
    for question_word in (a, b, c):
        scores[np.arange(len(scores)), question_word] = -np.inf
    return float(np.mean(scores.argmax(axis=1) == d))


def test_gensim_skipgram_solves_every_section_and_random_vectors_do_not(world: World) -> None:
    sentences = [sentence.split() for sentence in world.sentences(40_000)]
    trained = Word2Vec(sentences, vector_size=50, window=5, sg=1, epochs=5, workers=1, seed=1).wv
    random = np.random.default_rng(1).normal(size=trained.vectors.shape)
    for section, questions in world.analogies().items():
        assert analogy_accuracy(trained.index_to_key, trained.vectors, questions) >= 0.8, section
        assert analogy_accuracy(trained.index_to_key, random, questions) < 0.05, section

    pairs = world.similarities()
    expected = np.array([score for _, _, score in pairs])
    similarities = np.array([trained.similarity(a, b) for a, b, _ in pairs])
    random_vectors = dict(zip(trained.index_to_key, random, strict=True))
    assert np.corrcoef(similarities, expected)[0, 1] > 0.8
    assert abs(np.corrcoef([random_vectors[a] @ random_vectors[b] for a, b, _ in pairs], expected)[0, 1]) < 0.2


def test_analogies_are_written_in_the_questions_words_format(world: World, tmp_path: Path) -> None:
    sections = world.analogies()
    write_analogies(tmp_path / "questions.txt", sections)
    read: dict[str, list[tuple[str, ...]]] = {}
    for line in (tmp_path / "questions.txt").read_text().splitlines():
        if line.startswith(": "):
            read[line[2:]] = []
        else:
            read[list(read)[-1]].append(tuple(line.split(" ")))
    assert read == sections


# --- labeled texts ---------------------------------------------------------------------------------------------------


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def majority(labels: list[str]) -> float:
    return Counter(labels).most_common(1)[0][1] / len(labels)


def test_topic_words_determine_the_topic_and_the_majority_class_does_not(world: World) -> None:
    documents = world.topics(1000)
    topic_of = {word: topic for topic, table in world.ground_truth.topics.items() for word in table}
    correct = []
    for document in documents:
        votes = Counter(topic_of[word] for word in document.text.split() if word in topic_of)
        correct.append(votes.most_common(1)[0][0] == document.label)
    assert share(correct) > 0.98
    assert majority([document.label for document in documents]) < 0.2


def test_sentiment_depends_on_negation_and_the_majority_class_fails(world: World) -> None:
    reviews = world.sentiment(2000)
    by_rule, by_words = [], []
    for review in reviews:
        parts = review.text.split()
        signs = [(part in words.PRAISE) - (part in words.BLAME) for part in parts]
        meant = {-sign if before == "not" else sign for before, sign in zip(["", *parts], signs, strict=False) if sign}
        assert len(meant) == 1  # the opinions of one review agree
        by_rule.append(meant == {1})
        by_words.append(sum(signs) > 0)
    positive = [review.label == "positive" for review in reviews]
    assert by_rule == positive
    assert share([a == b for a, b in zip(by_words, positive, strict=True)]) < 0.9  # counting words of praise
    assert majority([review.label for review in reviews]) < 0.55


def test_senses_depend_on_the_other_words_and_not_on_the_homonym(world: World) -> None:
    senses = world.senses(4000)
    topic_of = {word: topic for topic, table in world.ground_truth.topics.items() for word in table}
    for sentence, word, sense in senses:
        assert word in sentence.split()
        assert sense in words.HOMONYMS[word]
        assert {topic_of[other] for other in sentence.split() if other in topic_of} == {sense}
    for word in words.HOMONYMS:
        assert majority([sense for _, homonym, sense in senses if homonym == word]) < 0.6  # the most frequent sense


def test_answers_are_at_their_offsets_and_cannot_be_guessed(world: World) -> None:
    questions = world.questions(3000)
    names = names_of(world) | {*words.THINGS, *words.WORKERS}
    for item in questions:
        assert item.passage[item.start : item.start + len(item.answer)] == item.answer
        begin = item.passage.rfind(" . ", 0, item.start)
        sentence = item.passage[begin + 3 if begin >= 0 else 0 :].partition(" . ")[0]
        subjects = {word for word in item.question.split() if word in names}
        assert subjects and subjects <= set(sentence.split())  # the sentence of the answer is about the subject
    frequent = Counter(item.answer for item in questions).most_common(1)[0][0]
    assert share([item.answer == frequent for item in questions]) < 0.1
    first = [next(word for word in item.passage.split() if word in names) for item in questions]
    assert share([a == item.answer for a, item in zip(first, questions, strict=True)]) < 0.2


def test_questions_agree_with_the_ground_truth(world: World) -> None:
    capital = {country.country: country.capital for country in world.countries}
    questions = [item for item in world.questions(3000) if item.question.startswith("what is the capital of ")]
    assert len(questions) > 100
    assert all(capital[item.question.split()[-1]] == item.answer for item in questions)


# --- translation -----------------------------------------------------------------------------------------------------


def back_to_english(language: Language, target: str) -> str:
    """Translate back with an independent implementation of the grammar, ending by ending."""
    nouns = {noun.root: (english, noun.gender) for english, noun in language.nouns.items()}
    adjectives = {root: english for english, root in language.adjectives.items()}
    verbs = {root: english for english, root in language.verbs.items()}
    tenses = {ending: tense for tense, ending in language.tenses.items()}

    def apart(word: str) -> tuple[str, str, bool, bool]:
        object_ = word.endswith(language.object)
        word = word.removesuffix(language.object)
        plural = word.endswith(language.plural)
        word = word.removesuffix(language.plural)
        return word[:-1], word[-1], plural, object_

    phrases: list[list[str]] = []
    plurals: list[bool] = []
    *before, last = target.split()
    for word in before:
        root, vowel, plural, object_ = apart(word)
        if root in nouns:
            noun, gender = nouns[root]
            assert object_ == (len(phrases) == 1)
            agreement = (language.genders[gender], plural, False)
            phrases.append(["some" if plural else "a", NOUNS[noun] if plural else noun])
            plurals.append(plural)
        else:
            assert (vowel, plural, object_) == agreement
            if root == language.article:
                phrases[-1][0] = "the"
            else:
                phrases[-1].insert(1, adjectives[root])
    root, vowel, plural, _ = apart(last)
    assert plural == plurals[0]
    third, past = VERBS[verbs[root]]
    forms = {"present": verbs[root] if plural else third, "past": past, "future": f"will {verbs[root]}"}
    return " ".join([*phrases[0], forms[tenses[vowel]], *phrases[1]])


@pytest.mark.parametrize("seed", [1, 2, 3, UNTUNED])
def test_every_translation_can_be_translated_back(seed: int) -> None:
    world = World(seed=seed)
    for source, target in world.translations(1000):
        assert back_to_english(world.language, target) == source


def test_word_by_word_translation_is_wrong(world: World) -> None:
    pairs = list(world.translations(2000))
    assert not any(set(source.split()) & set(target.split()) for source, target in pairs)
    language = world.language
    dictionary = {form: language.nouns[word].root for word, plural in NOUNS.items() for form in (word, plural)}
    dictionary |= {form: language.verbs[word] for word, forms in VERBS.items() for form in (word, *forms)}
    dictionary |= dict(language.adjectives) | {"the": language.article}
    hits = []
    for source, target in pairs:  # even if each word had the right ending
        roots = [dictionary[word] for word in source.split() if word in dictionary]
        hits.append(all(word.startswith(root) for word, root in zip(target.split(), roots, strict=True)))
    assert share(hits) == 0
    assert len({source for source, _ in pairs}) > 0.99 * len(pairs)  # so that a test set is not in the training set


# --- graph, ratings, table -------------------------------------------------------------------------------------------


def test_friends_are_mostly_of_the_same_community(world: World) -> None:
    edges, communities = world.friendships(people=300, communities=5)
    assert (edges[:, 0] < edges[:, 1]).all() and len(np.unique(edges, axis=0)) == len(edges)
    assert edges.max() < 300 and len(np.unique(edges)) == 300  # everyone has a friend
    same = communities[edges[:, 0]] == communities[edges[:, 1]]
    pairs = communities[:, None] == communities
    inside, outside = (pairs.sum() - 300) / 2, (~pairs).sum() / 2
    assert same.sum() / inside > 10 * (~same).sum() / outside

    # The friends of a person determine the community; the largest community and adjacent numbers do not.
    friends: list[list[int]] = [[] for _ in communities]
    for a, b in edges:
        friends[a].append(communities[b])
        friends[b].append(communities[a])
    correct = [Counter(labels).most_common(1)[0][0] == own for labels, own in zip(friends, communities, strict=True)]
    assert share(correct) > 0.95
    assert np.bincount(communities).max() / 300 < 0.4
    assert share([a == b for a, b in pairwise(communities)]) < 0.35


def test_ratings_depend_on_preferences_and_not_on_popularity(world: World) -> None:
    users, items, ratings, tastes, traits = world.ratings()
    assert len(np.unique(np.stack([users, items]), axis=1).T) == len(ratings)
    assert set(ratings) == {1, 2, 3, 4, 5}
    match = (tastes[users] * traits[items]).sum(axis=1)
    assert np.corrcoef(match, ratings)[0, 1] > 0.85
    item_mean, user_mean = ((np.bincount(by, ratings) / np.maximum(np.bincount(by), 1))[by] for by in (items, users))

    def error(guess: np.ndarray) -> float:
        return float(np.sqrt(np.mean((guess - ratings) ** 2)))

    averages = min(error(item_mean), error(user_mean), error(item_mean + user_mean - ratings.mean()))
    assert error(1.5 + 4 * match) < 0.6 * averages


def test_interactions_depend_on_preferences_and_not_on_popularity(world: World) -> None:
    users, items, _, tastes, traits = world.ratings()
    interacted = np.zeros((len(tastes), len(traits)), dtype=bool)
    interacted[users, items] = True
    popularity = interacted.sum(axis=0)

    def precision(scores: np.ndarray) -> float:
        best = np.argsort(-scores, axis=1)[:, :10]
        return float(np.take_along_axis(interacted, best, axis=1).mean())

    by_popularity = precision(np.broadcast_to(popularity, interacted.shape))
    by_taste = precision((tastes @ traits.T) * np.sqrt(popularity))
    assert by_taste > 1.3 * by_popularity


def test_rows_have_the_stated_dependencies_and_missing_values(world: World) -> None:
    columns, complete = world.rows(4000)
    assert list(columns) == list(complete)
    capital = {country.country: country.capital for country in world.countries}
    assert [capital[country] for country in complete["country"]] == complete["city"]
    for name, values in columns.items():
        missing = share([value is None for value in values])
        assert abs(missing - {"income": 0.1, "school": 0.05, "city": 0.05}.get(name, 0.0)) < 0.02
        assert all(a is None or a == b for a, b in zip(values, complete[name], strict=True))

    ranks = {country.country: rank for rank, country in enumerate(world.countries)}
    school = {"none": 0, "school": 1, "university": 2}
    causes = np.array(
        [
            [1, ranks[country], school[level], age]
            for country, level, age in zip(complete["country"], complete["school"], complete["age"], strict=True)
        ]
    )
    income = np.array(complete["income"])
    weights, *_ = np.linalg.lstsq(causes, income, rcond=None)
    np.testing.assert_allclose(weights, [900, 150, 600, 12], rtol=0.03)
    assert np.std(income - causes @ weights) < 0.15 * np.std(income)  # predicting the mean leaves the full deviation
    assert abs(np.corrcoef(complete["height"], income)[0, 1]) < 0.1

    owns = np.array(complete["owns_horse"])
    assert np.mean((income > 2400) == owns) > 0.9
    assert max(owns.mean(), 1 - owns.mean()) < 0.7  # the majority
