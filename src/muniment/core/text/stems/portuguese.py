"""The Snowball stemmer of Portuguese."""

from __future__ import annotations

from muniment.core.text.stems.endings import Endings, before_standard, region_of_verbs, regions

__all__ = ["stem_portuguese"]

_VOWELS = frozenset("aeiouáéíóúâêô")
_STANDARD = Endings("""
    go: eza ezas ico ica icos icas ismo ismos ável ível ista istas oso osa osos osas amento amentos imento imentos
        adora ador aça~o adoras adores aço~es ante antes ância
    log: logia logias
    u: uça~o uço~es
    ente: ência ências
    amente: amente
    mente: mente
    idade: idade idades
    iv: iva ivo ivas ivos
    ira: ira iras
""")
_BEHIND = {
    "mente": Endings("go: ante avel ível"),
    "idade": Endings("go: abil ic iv"),
    "iv": Endings("go: at"),
    "amente": Endings("iv: iv go: os ic ad"),
}
_VERBS = Endings("""
    go: ada ida ia aria eria iria ará ara erá era irá ava asse esse isse aste este iste ei arei erei irei am iam ariam
        eriam iriam aram eram iram avam em arem erem irem assem essem issem ado ido ando endo indo ara~o era~o ira~o ar
        er ir as adas idas ias arias erias irias arás aras erás eras irás avas es ardes erdes irdes ares eres ires asses
        esses isses astes estes istes is ais eis íeis aríeis eríeis iríeis áreis areis éreis ereis íreis ireis ásseis
        ésseis ísseis áveis ados idos ámos amos íamos aríamos eríamos iríamos áramos éramos íramos ávamos emos aremos
        eremos iremos ássemos êssemos íssemos imos armos ermos irmos eu iu ou ira iras
""")
_RESIDUE = Endings("go: os a i o á í ó")


def stem_portuguese(word: str) -> str:
    """The stem of a word in lower case. A vowel with a tilde is read as a vowel and a consonant."""
    word = word.replace("ã", "a~").replace("õ", "o~")
    verbs = region_of_verbs(word, _VOWELS)
    first, second = regions(word, _VOWELS)
    shorter = _without_standard(word, verbs, first, second)
    if shorter is None:
        ending, _ = _VERBS.longest(word, verbs)
        shorter = word[: -len(ending)] if ending else None
    if shorter is not None:
        word = shorter
        if word.endswith("ci") and len(word) - 1 >= verbs:
            word = word[:-1]
    else:
        ending, _ = _RESIDUE.longest(word)
        if ending and len(word) - len(ending) >= verbs:
            word = word[: -len(ending)]
    return _without_last_vowel(word, verbs).replace("a~", "ã").replace("o~", "õ")


def _without_standard(word: str, verbs: int, first: int, second: int) -> str | None:
    """None where no such ending could be taken off."""
    ending, action = _STANDARD.longest(word)
    rest = word[: len(word) - len(ending)]
    if action == "ira":
        return rest + "ir" if len(rest) >= verbs and rest.endswith("e") else None
    if not ending or len(rest) < (first if action == "amente" else second):
        return None
    return before_standard(rest, action, _BEHIND, second)


def _without_last_vowel(word: str, verbs: int) -> str:
    if word.endswith("ç"):
        return word[:-1] + "c"
    if not word.endswith(("e", "é", "ê")) or len(word) - 1 < verbs:
        return word
    word = word[:-1]
    return word[:-1] if word.endswith(("gu", "ci")) and len(word) - 1 >= verbs else word
