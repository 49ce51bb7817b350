"""Stems of words in Latin script: Porter's algorithm, after a table of irregular English forms.

Written out here so that the index depends on no package: a stem is part of what is stored, and a release of somebody
else's stemmer would silently split an index in two. It holds no state and reads nothing.
"""

from __future__ import annotations

import re

__all__ = ["IRREGULAR", "porter_stem", "stem"]

_FORMS = """
be: am is are was were been being; have: has had having; do: does did done; go: went gone; buy: bought; see: saw seen;
say: said; make: made; get: got gotten; take: took taken; come: came; think: thought; give: gave given; find: found;
tell: told; become: became; leave: left; feel: felt; bring: brought; begin: began begun; keep: kept; hold: held;
write: wrote written; stand: stood; hear: heard; let: let; mean: meant; meet: met; run: ran; pay: paid;
sit: sat; speak: spoke spoken; lead: led; read: read; grow: grew grown; lose: lost; fall: fell fallen;
send: sent; build: built; understand: understood; draw: drew drawn; break: broke broken; spend: spent; cut: cut;
rise: rose risen; drive: drove driven; wear: wore worn; choose: chose chosen; eat: ate eaten; sleep: slept;
win: won; teach: taught; catch: caught; fight: fought; sell: sold; sing: sang sung; swim: swam swum; fly: flew flown;
forget: forgot forgotten; know: knew known; throw: threw thrown; ride: rode ridden; drink: drank drunk; ring: rang rung;
shake: shook shaken; steal: stole stolen; wake: woke woken; seek: sought; shoot: shot; dig: dug; hang: hung;
stick: stuck; strike: struck; swear: sworn swore; tear: torn; hide: hid hidden; bite: bit bitten; blow: blew blown;
freeze: froze frozen; deal: dealt; dream: dreamt; learn: learnt; burn: burnt; lend: lent; bend: bent; feed: fed;
breed: bred; bleed: bled; light: lit; show: shown; sew: sewn; sink: sank sunk; shrink: shrank shrunk; spin: spun;
die: died dies dying; tie: tied tying; lie: lied lying; citizen: citizenship; friend: friendship;
relation: relationship relationships; child: children; man: men; woman: women;
person: people persons; foot: feet; tooth: teeth; mouse: mice; goose: geese;
wife: wives; life: lives; knife: knives; leaf: leaves; half: halves; shelf: shelves; loaf: loaves; wolf: wolves;
marry: marriage married; photo: photograph photographs pic pics; mother: mom mum mommy moms mama;
father: dad daddy dads papa; kid: kiddo kiddos; grandmother: grandma granny nana; grandfather: grandpa granddad;
television: tv; bicycle: bike bikes; refrigerator: fridge; phone: telephone telephones; university: uni;
birthday: bday; favourite: favorite fave favorites; colour: color colors; centre: center centers; theatre: theater;
travel: travelled travelling traveller; organise: organize organized organizing; realise: realize realized realizing
"""

IRREGULAR: dict[str, str] = {
    form: base.strip()
    for base, _, forms in (entry.partition(":") for entry in _FORMS.replace("\n", " ").split(";"))
    for form in forms.split()
}
"""A form → the word it is filed under; the stem of that word is the term."""

_VOWEL = re.compile(r"[aeiou]|(?<![aeiou])y(?!\Z)|(?<=[^aeiou])y")
_CONSONANTS_AFTER_VOWELS = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)(?:[^aeiouy]|(?<![^aeiou])y)")
_SHORT_END = re.compile(r"(?:\A|[^aeiou])[aeiouy][^aeiouwxy]\Z")

_STEP_2_TEXT = (
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous "
    "ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble logi>log"
)
_STEP_3_TEXT = "icate>ic ative> alize>al iciti>ic ical>ic ful> ness>"
_STEP_2 = {suffix: new for suffix, _, new in (pair.partition(">") for pair in _STEP_2_TEXT.split())}
_STEP_3 = {suffix: new for suffix, _, new in (pair.partition(">") for pair in _STEP_3_TEXT.split())}
_LAST_SUFFIXES = "ement al ance ence er ic able ible ant ment ent sion tion ou ism ate iti ous ive ize"
_STEP_4 = tuple(_LAST_SUFFIXES.split())  # longest first where one ends another
_ENDS_2, _ENDS_3 = tuple(_STEP_2), tuple(_STEP_3)


def stem(word: str) -> str:
    """The stem of a casefolded word; what is not made of the letters a–z is its own stem."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return porter_stem(IRREGULAR.get(word, word))


def porter_stem(word: str) -> str:
    """Porter (1980), with the two departures of his own later program (`bli`, `logi`)."""
    if len(word) < 3:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    if word.endswith(_ENDS_2):
        word = _replace(word, _STEP_2)
    if word.endswith(_ENDS_3):
        word = _replace(word, _STEP_3)
    if word.endswith(_STEP_4):
        word = _drop(word)
    if word.endswith("e"):
        size = _measure(word[:-1])
        if size > 1 or (size == 1 and not _SHORT_END.search(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _has_vowel(text: str) -> bool:
    return _VOWEL.search(text) is not None


def _measure(text: str) -> int:
    """How often a vowel is followed by a consonant: Porter's m."""
    return len(_CONSONANTS_AFTER_VOWELS.findall(text))


def _plural(word: str) -> str:
    if not word.endswith("s"):
        return word
    if word.endswith("sses") or (word.endswith("ies") and len(word) > 4):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-1]
    return word if word.endswith("ss") else word[:-1]


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _mended(rest) if _has_vowel(rest) else word
    return word


def _mended(word: str) -> str:
    """What is left after -ed and -ing gets its e back, or loses its doubled consonant."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        return word[:-1]
    if _measure(word) == 1 and _SHORT_END.search(word):
        return word + "e"
    return word


def _replace(word: str, table: dict[str, str]) -> str:
    for suffix, new in table.items():
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + new if _measure(rest) else word
    return word


def _drop(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word[:-3] if suffix in ("sion", "tion") else word[: -len(suffix)]
            return rest if _measure(rest) > 1 else word
    return word
