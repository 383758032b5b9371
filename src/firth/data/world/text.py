"""Running text that states the ground truth, for training word vectors.

Analogous words occur in parallel sentences. What the two words of a pair share (their country, nouns or topic) is
expressed with the same words for both. What distinguishes them (king or queen, comparative or base form) is expressed
with the same words for every pair. This is why b − a + c is close to d.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from firth.data.world.ground_truth import GroundTruth, Inflected
from firth.data.world.names import pick, sample
from firth.data.world.words import BLAME, FAMILY, HOMONYMS, PRAISE, REVIEWED, WORKERS

Draw = Callable[[Random], str]

ROLES: tuple[tuple[str, ...], ...] = (
    (
        "the kingdom of {country} grew",
        "the provinces of {country} met",
        "the borders of {country} were drawn",
        "the laws of {country} were proclaimed",
        "all of {country} rejoiced",
    ),
    (
        "the streets of {capital} were crowded",
        "the city of {capital} was built",
        "the mayor of {capital} spoke",
        "the gates of {capital} were closed",
        "the market in {capital} was held",
    ),
    (
        "he hunted there as king {king} with his knights",
        "king {king} sharpened his sword",
        "his majesty king {king} trimmed his beard",
        "lord and king {king} drilled his soldiers",
        "he is called king {king} by his squire",
    ),
    (
        "she danced there as queen {queen} with her ladies",
        "queen {queen} embroidered her gown",
        "her majesty queen {queen} braided her hair",
        "lady and queen {queen} praised her maids",
        "she is called queen {queen} by her handmaid",
    ),
    (
        "the {people} language was spoken",
        "many {people} merchants traded",
        "a {people} folk dance was performed",
        "some {people} farmers settled",
        "typical {people} customs survived",
    ),
)
LOCATIONS: tuple[str, ...] = (
    "in the forest of {forest}",
    "near mount {mountain}",
    "at the shrine of {saint}",
    "beside lake {lake}",
)
STATEMENTS: tuple[str, ...] = (
    "{capital} is the capital of {country}",
    "the capital of {country} is {capital}",
    "the king of {country} is {king}",
    "{queen} is the queen of {country}",
    "king {king} and queen {queen} live in {capital}",
    "the {people} people live in {country}",
    "the forest of {forest} lies below mount {mountain}",
    "the shrine of {saint} stands near lake {lake}",
)
FAMILY_FRAMES: tuple[str, ...] = (
    "the {word} thought of the {cue} and {he} smiled to {him}self",
    "{he} is the best {word} with {his} own {cue}",
    "the {word} lost {his} {cue} and {he} wept",
    "this {word} told me {he} remembers the {cue}",
    "{he} was the {word} who wanted {his} {cue} and {his} {second}",
    "about the {cue} and the {second} the {word} changed {his} mind",
)
FORMS_OF_ADJECTIVES: tuple[tuple[str, ...], ...] = (
    (
        "the {thing} is as {word} as the {second}",
        "it was one very {word} {thing}",
        "how {word} the {thing} is and how {word} the {second}",
        "the {thing} is so {word} that nobody wants the {second}",
    ),
    (
        "the {thing} is {word} than the {second}",
        "it was much {word} than any other {thing}",
        "the {thing} grew even {word} than the {second}",
        "any {thing} is far {word} than this {second}",
    ),
    (
        "the {word} {thing} of all stood beside the {second}",
        "it was by far the {word} {thing} in the world",
        "of all things the {thing} is the {word} and then the {second}",
        "nobody ever saw the {word} {thing} of them all",
    ),
)
FORMS_OF_VERBS: tuple[tuple[str, ...], ...] = (
    (
        "tomorrow the {worker} will {word} the {thing}",
        "you must {word} the {thing} and then the {second}",
        "the {worker} wants to {word} that {thing}",
        "they can {word} the {thing} without the {second}",
    ),
    (
        "yesterday the {worker} {word} the {thing}",
        "last week someone {word} the {thing} and then the {second}",
        "the {worker} {word} that {thing} long ago",
        "once they {word} the {thing} without the {second}",
    ),
    (
        "every day the {worker} {word} the {thing}",
        "each morning someone {word} the {thing} and then the {second}",
        "the {worker} usually {word} that {thing}",
        "nobody here ever {word} the {thing} without the {second}",
    ),
    (
        "right now the {worker} is {word} the {thing}",
        "we are {word} the {thing} and then the {second}",
        "the {worker} was busy {word} that {thing}",
        "they have been {word} the {thing} without the {second}",
    ),
)
TOPIC_FRAMES: tuple[str, ...] = (
    "there was the {} beside the {} and one {} too",
    "we talked about the {} and the {} but not the {}",
    "without the {} no {} or {} is any use",
    "look at this {} this {} and that {}",
    "the picture shows the {} with one {} under some {}",
    "he wrote of the {} then of the {} and last of the {}",
)
OPINIONS: tuple[str, ...] = (
    "the {thing} in {capital} was {word}",
    "for us the {thing} was {word}",
    "what they said of the {thing} was {word}",
    "{person} called the {thing} {word}",
)


def sentence(truth: GroundTruth) -> Draw:
    """Return a function that draws one sentence about any part of the ground truth."""
    kinds: tuple[Draw, ...] = (
        *(_located_role(truth),) * 3,
        *(_statement(truth),) * 2,
        *(_family,) * 3,
        *(_inflection(truth.adjectives, FORMS_OF_ADJECTIVES),) * 2,
        *(_inflection(truth.verbs, FORMS_OF_VERBS),) * 2,
        *(topic_sentence(truth),) * 2,
        lambda random: opinion(random, truth, praise=random.random() < 0.5),
    )
    return lambda random: pick(random, kinds)(random)


def _located_role(truth: GroundTruth) -> Draw:
    def draw(random: Random) -> str:
        role, location = pick(random, pick(random, ROLES)), pick(random, LOCATIONS)
        first, last = (role, location) if random.random() < 0.5 else (location, role)
        return f"{first} {last}".format_map(pick(random, truth.countries).slots)

    return draw


def _statement(truth: GroundTruth) -> Draw:
    return lambda random: pick(random, STATEMENTS).format_map(pick(random, truth.countries).slots)


def _family(random: Random) -> str:
    male, female, cues = pick(random, FAMILY)
    cue, second = sample(random, cues, 2)
    if random.random() < 0.5:
        return pick(random, FAMILY_FRAMES).format(word=male, he="he", him="him", his="his", cue=cue, second=second)
    return pick(random, FAMILY_FRAMES).format(word=female, he="she", him="her", his="her", cue=cue, second=second)


def _inflection(table: tuple[Inflected, ...], frames: tuple[tuple[str, ...], ...]) -> Draw:
    def draw(random: Random) -> str:
        forms, things = pick(random, table)
        form = int(random.random() * len(forms))
        thing, second = sample(random, things, 2)
        return pick(random, frames[form]).format(
            word=forms[form], thing=thing, second=second, worker=pick(random, WORKERS)
        )

    return draw


def topic_sentence(truth: GroundTruth) -> Draw:
    """Return a function that draws a sentence with three words of one topic, possibly homonyms."""
    words = {topic: alone + homonyms_of(topic) for topic, alone in truth.topics.items()}
    topics = tuple(words)
    return lambda random: pick(random, TOPIC_FRAMES).format(*sample(random, words[pick(random, topics)], 3))


def homonyms_of(topic: str) -> tuple[str, ...]:
    """Return the homonyms with a sense in this topic."""
    return tuple(word for word, senses in HOMONYMS.items() if topic in senses)


def opinion(random: Random, truth: GroundTruth, praise: bool) -> str:
    """Draw a positive or negative opinion; one in five negates the opposite."""
    denied = random.random() < 0.2
    word = pick(random, PRAISE if praise != denied else BLAME)
    return pick(random, OPINIONS).format(
        thing=pick(random, REVIEWED),
        capital=pick(random, truth.countries).capital,
        person=pick(random, truth.persons),
        word=f"not {word}" if denied else word,
    )
