"""The Snowball stemmer of Spanish."""

from __future__ import annotations

from muniment.core.text.stems.endings import Endings, before_standard, region_of_verbs, regions, without_pronoun

__all__ = ["stem_spanish"]

_VOWELS = frozenset("aeiouáéíóúü")
_PRONOUNS = Endings("pronoun: me se sela selo selas selos la le lo las les los nos")
_BEFORE_PRONOUN = Endings("accent: iéndo ándo ár ér ír plain: ando iendo ar er ir after_u: yendo")
_STANDARD = Endings("""
    go: anza anzas ico ica icos icas ismo ismos able ables ible ibles ista istas oso osa osos osas amiento amientos
        imiento imientos
    go_ic: adora ador ación adoras adores aciones ante antes ancia ancias acion
    log: logía logías
    u: ución uciones ucion
    ente: encia encias
    amente: amente
    mente: mente
    idad: idad idades
    iv: iva ivo ivas ivos
""")
_BEHIND = {
    "go_ic": Endings("go: ic"),
    "mente": Endings("go: ante able ible"),
    "idad": Endings("go: abil ic iv"),
    "iv": Endings("go: at"),
    "amente": Endings("iv: iv go: os ic ad"),
}
_Y_VERBS = Endings("go: ya ye yan yen yeron yendo yo yó yas yes yais yamos")
_VERBS = Endings("""
    gu: en es éis emos
    go: arían arías arán arás aríais aría aréis aríamos aremos ará aré erían erías erán erás eríais ería eréis eríamos
        eremos erá eré irían irías irán irás iríais iría iréis iríamos iremos irá iré aba ada ida ía ara iera ad ed id
        ase iese aste iste an aban ían aran ieran asen iesen aron ieron ado ido ando iendo ió ar er ir as abas adas
        idas ías aras ieras ases ieses ís áis abais íais arais ierais aseis ieseis asteis isteis ados idos amos ábamos
        íamos imos áramos iéramos iésemos ásemos
""")
_RESIDUE = Endings("go: os a o á í ó gu: e é")
_PLAIN = str.maketrans("áéíóú", "aeiou")


def stem_spanish(word: str) -> str:
    """The stem of a word in lower case, its acute accents taken off."""
    verbs = region_of_verbs(word, _VOWELS)
    first, second = regions(word, _VOWELS)
    word = _without_pronoun(word, verbs)
    shorter = _without_standard(word, first, second)
    if shorter is None:
        shorter = _without_verb(word, verbs)
    word = shorter
    ending, action = _RESIDUE.longest(word, verbs)
    if ending and _RESIDUE.longest(word)[0] == ending:
        word = word[: -len(ending)]
        if action == "gu" and word.endswith("gu") and len(word) - 1 >= verbs:
            word = word[:-1]
    return word.translate(_PLAIN)


def _without_pronoun(word: str, verbs: int) -> str:
    found = without_pronoun(word, _PRONOUNS, _BEFORE_PRONOUN, verbs)
    if found is None:
        return word
    rest, ending, action = found
    if action == "after_u" and not rest.endswith("uyendo"):
        return word
    return rest[: -len(ending)] + ending.translate(_PLAIN) if action == "accent" else rest


def _without_standard(word: str, first: int, second: int) -> str | None:
    """None where no such ending could be taken off."""
    ending, action = _STANDARD.longest(word)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < (first if action == "amente" else second):
        return None
    return before_standard(rest, action, _BEHIND, second)


def _without_verb(word: str, verbs: int) -> str:
    ending, _ = _Y_VERBS.longest(word, verbs)
    if ending and word[: -len(ending)].endswith("u"):
        return word[: -len(ending)]
    ending, action = _VERBS.longest(word, verbs)
    if not ending:
        return word
    rest = word[: -len(ending)]
    return rest[:-1] if action == "gu" and rest.endswith("gu") else rest
