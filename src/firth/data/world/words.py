"""The English words of the synthetic corpus. No word is in two tables, except for the table of homonyms."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Male form, female form, and the words used with both.
FAMILY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("king", "queen", ("throne", "crown", "palace", "kingdom")),
    ("prince", "princess", ("tower", "tutor", "ring", "ball")),
    ("duke", "duchess", ("estate", "carriage", "butler", "vault")),
    ("father", "mother", ("cradle", "toddler", "lullaby", "nursery")),
    ("son", "daughter", ("inheritance", "homework", "obedience", "surname")),
    ("brother", "sister", ("sibling", "quarrel", "secret", "toy")),
    ("uncle", "aunt", ("visit", "gift", "postcard", "cousin")),
    ("nephew", "niece", ("birthday", "sweets", "holiday", "guardian")),
    ("husband", "wife", ("wedding", "vow", "honeymoon", "mortgage")),
    ("man", "woman", ("razor", "career", "neighbour", "vote")),
    ("boy", "girl", ("school", "swing", "teacher", "puddle")),
    ("actor", "actress", ("stage", "script", "rehearsal", "applause")),
    ("waiter", "waitress", ("tray", "menu", "tip", "apron")),
    ("host", "hostess", ("party", "guest", "invitation", "toast")),
    ("wizard", "witch", ("potion", "spell", "broom", "cauldron")),
    ("monk", "nun", ("abbey", "prayer", "psalm", "candle")),
)

ADJECTIVES: tuple[tuple[str, str, str], ...] = (
    ("big", "bigger", "biggest"),
    ("small", "smaller", "smallest"),
    ("tall", "taller", "tallest"),
    ("short", "shorter", "shortest"),
    ("old", "older", "oldest"),
    ("young", "younger", "youngest"),
    ("fast", "faster", "fastest"),
    ("slow", "slower", "slowest"),
    ("strong", "stronger", "strongest"),
    ("weak", "weaker", "weakest"),
    ("warm", "warmer", "warmest"),
    ("cold", "colder", "coldest"),
    ("bright", "brighter", "brightest"),
    ("dark", "darker", "darkest"),
    ("heavy", "heavier", "heaviest"),
    ("light", "lighter", "lightest"),
    ("cheap", "cheaper", "cheapest"),
    ("rich", "richer", "richest"),
    ("quiet", "quieter", "quietest"),
    ("loud", "louder", "loudest"),
    ("deep", "deeper", "deepest"),
    ("wide", "wider", "widest"),
    ("sharp", "sharper", "sharpest"),
    ("smooth", "smoother", "smoothest"),
)

# Base form, past tense, third person, -ing form.
VERBS: tuple[tuple[str, str, str, str], ...] = (
    ("carry", "carried", "carries", "carrying"),
    ("paint", "painted", "paints", "painting"),
    ("clean", "cleaned", "cleans", "cleaning"),
    ("repair", "repaired", "repairs", "repairing"),
    ("sell", "sold", "sells", "selling"),
    ("buy", "bought", "buys", "buying"),
    ("break", "broke", "breaks", "breaking"),
    ("draw", "drew", "draws", "drawing"),
    ("hide", "hid", "hides", "hiding"),
    ("find", "found", "finds", "finding"),
    ("push", "pushed", "pushes", "pushing"),
    ("pull", "pulled", "pulls", "pulling"),
    ("throw", "threw", "throws", "throwing"),
    ("catch", "caught", "catches", "catching"),
    ("wash", "washed", "washes", "washing"),
    ("steal", "stole", "steals", "stealing"),
    ("choose", "chose", "chooses", "choosing"),
    ("bring", "brought", "brings", "bringing"),
    ("keep", "kept", "keeps", "keeping"),
    ("lift", "lifted", "lifts", "lifting"),
    ("open", "opened", "opens", "opening"),
    ("polish", "polished", "polishes", "polishing"),
    ("wrap", "wrapped", "wraps", "wrapping"),
    ("forget", "forgot", "forgets", "forgetting"),
)

# Nouns that adjectives describe and verbs act on.
THINGS: tuple[str, ...] = (
    *("lamp", "chair", "table", "window", "door", "basket", "bottle", "box", "coat", "hat", "shoe", "glove"),
    *("mirror", "clock", "carpet", "curtain", "pillow", "blanket", "ladder", "hammer", "needle", "rope", "chain"),
    *("wheel", "cart", "saddle", "lantern", "barrel", "bucket", "shovel", "map", "book", "letter", "pencil"),
    *("scarf", "button", "ribbon", "jewel", "statue", "flag", "tent", "cage", "bell", "key", "lock", "cup"),
    *("plate", "vase", "bench", "shelf", "drawer", "cupboard", "wallet", "parcel", "stamp", "puppet"),
    *("kite", "marble", "feather", "stone", "stick", "brush", "sponge", "towel", "comb", "thread", "quilt"),
)

WORKERS: tuple[str, ...] = ("baker", "tailor", "smith", "potter", "clerk", "porter", "servant", "weaver")

TOPICS: dict[str, tuple[str, ...]] = {
    "water": _words("river boat stream fish shore wave mud reed ferry flood tide canoe harbour net sailor"),
    "money": _words("loan coin debt savings account cash deposit interest credit banker invoice tax fee profit"),
    "animals": _words("wolf fox bear deer rabbit owl hawk paw tail fur nest burrow den claw beak"),
    "sports": _words("team goal score coach player match league stadium referee medal trophy race helmet fan"),
    "building": _words("brick roof cement plank nail mason scaffold beam wall plaster tile drill girder crew"),
    "music": _words("violin melody choir song drum flute concert chord rhythm singer piano harp tune opera"),
    "body": _words("heart lung liver bone skin blood stomach muscle kidney brain elbow shoulder finger knee"),
    "kitchen": _words("soup oven spoon flour butter onion garlic sauce bread kettle pan recipe cook salt"),
}

# Words with two senses, each of which is a topic.
HOMONYMS: dict[str, tuple[str, str]] = {
    "bank": ("water", "money"),
    "bat": ("animals", "sports"),
    "crane": ("animals", "building"),
    "organ": ("music", "body"),
    "bass": ("music", "water"),
    "pitch": ("music", "sports"),
    "mint": ("kitchen", "money"),
    "joint": ("body", "building"),
}

PRAISE: tuple[str, ...] = _words(
    "wonderful delightful excellent superb charming lovely splendid brilliant pleasant perfect marvellous fine"
)
BLAME: tuple[str, ...] = _words(
    "terrible dreadful awful horrible disgusting miserable poor nasty boring rotten shabby disappointing"
)
REVIEWED: tuple[str, ...] = _words("dinner room service view garden breakfast staff bath parlour terrace wine bed")
