"""A constructed language, and the rules that translate English into it.

English sentences are: determiner adjective? noun, verb, determiner adjective? noun. In the other language the verb
comes last, and adjective and article follow the noun. Adjective and article agree with the noun in gender and number;
the object has a case ending; the verb agrees with its subject in number. The translation is one-to-one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from firth.data.world.names import Namer, pick, sample

# Singular and plural. No word after an article begins with a vowel, so "a" never becomes "an".
NOUNS: dict[str, str] = {
    **{word: word + "s" for word in ("dog", "cat", "horse", "cow", "pig", "goat", "duck", "poet", "judge", "nurse")},
    **{word: word + "s" for word in ("farmer", "doctor", "soldier", "sailor", "lawyer", "pirate", "king", "baker")},
    "wolf": "wolves",
    "mouse": "mice",
    "goose": "geese",
    "thief": "thieves",
    "fairy": "fairies",
    "child": "children",
}
# base: third person, past
VERBS: dict[str, tuple[str, str]] = {
    "see": ("sees", "saw"),
    "hear": ("hears", "heard"),
    "follow": ("follows", "followed"),
    "help": ("helps", "helped"),
    "fear": ("fears", "feared"),
    "love": ("loves", "loved"),
    "fight": ("fights", "fought"),
    "teach": ("teaches", "taught"),
    "chase": ("chases", "chased"),
    "know": ("knows", "knew"),
    "call": ("calls", "called"),
    "greet": ("greets", "greeted"),
}
ADJECTIVES: tuple[str, ...] = (
    *("big", "small", "red", "black", "white", "happy", "sad", "brave", "lazy", "hungry", "tired", "proud"),
)
TENSES: tuple[str, ...] = ("present", "past", "future")


class Translation(NamedTuple):
    """A sentence in both languages."""

    source: str  # English
    target: str  # the constructed language


class Noun(NamedTuple):
    """A noun of the constructed language."""

    root: str
    gender: int  # 0 or 1


@dataclass(frozen=True)
class Language:
    """The roots by English word, and the endings. A noun is root + gender vowel + plural? + object?."""

    nouns: Mapping[str, Noun]
    adjectives: Mapping[str, str]
    verbs: Mapping[str, str]
    article: str  # root of "the"; "a" and "some" are not translated
    genders: tuple[str, str]
    tenses: Mapping[str, str]
    plural: str
    object: str


def make_language(seed: int) -> Language:
    """Generate the language of a seed."""
    random = Random(f"language/{seed}")
    name = Namer(random)
    vowels, consonants = sample(random, ("a", "e", "i", "o", "u"), 5), sample(random, ("n", "r", "s", "k", "m"), 2)
    return Language(
        nouns={word: Noun(name(1), int(random.random() * 2)) for word in NOUNS},
        adjectives={word: name(1) for word in ADJECTIVES},
        verbs={word: name(1) for word in VERBS},
        article=name(1),
        genders=(vowels[0], vowels[1]),
        tenses=dict(zip(TENSES, vowels[2:], strict=True)),
        plural=consonants[0],
        object=consonants[1],
    )


class Phrase(NamedTuple):
    """A noun phrase."""

    noun: str
    adjective: str  # empty for none
    definite: bool
    plural: bool


def translation(language: Language, random: Random) -> Translation:
    """Draw a sentence in both languages."""
    subject, object_ = _phrase(random), _phrase(random)
    verb, tense = pick(random, tuple(VERBS)), pick(random, TENSES)
    source = f"{_english(subject)} {_english_verb(verb, tense, subject.plural)} {_english(object_)}"
    ending = language.tenses[tense] + language.plural * subject.plural
    target = f"{_foreign(language, subject, '')} {_foreign(language, object_, language.object)}"
    return Translation(source, f"{target} {language.verbs[verb]}{ending}")


def _phrase(random: Random) -> Phrase:
    adjective = pick(random, ADJECTIVES) if random.random() < 0.5 else ""
    return Phrase(pick(random, tuple(NOUNS)), adjective, random.random() < 0.5, random.random() < 0.5)


def _english(phrase: Phrase) -> str:
    determiner = "the" if phrase.definite else "some" if phrase.plural else "a"
    noun = NOUNS[phrase.noun] if phrase.plural else phrase.noun
    return " ".join(word for word in (determiner, phrase.adjective, noun) if word)


def _english_verb(verb: str, tense: str, plural: bool) -> str:
    third, past = VERBS[verb]
    return {"present": verb if plural else third, "past": past, "future": f"will {verb}"}[tense]


def _foreign(language: Language, phrase: Phrase, case: str) -> str:
    noun = language.nouns[phrase.noun]
    agreement = language.genders[noun.gender] + language.plural * phrase.plural
    words = [noun.root + agreement + case]
    if phrase.adjective:
        words.append(language.adjectives[phrase.adjective] + agreement)
    if phrase.definite:
        words.append(language.article + agreement)
    return " ".join(words)
