"""The Snowball stemmer of Italian."""

from __future__ import annotations

from muniment.core.text.stems.endings import (
    Endings,
    before_standard,
    marked_between_vowels,
    region_of_verbs,
    regions,
    without_pronoun,
)

__all__ = ["stem_italian"]

_VOWELS = frozenset("aeiouàèìòù")
_GRAVE = str.maketrans("áéíóú", "àèìòù")
_PRONOUNS = Endings("""
    pronoun: ci gli la le li lo mi ne si ti vi sene gliela gliele glieli glielo gliene mela mele meli melo mene tela
        tele teli telo tene cela cele celi celo cene vela vele veli velo vene
""")
_BEFORE_PRONOUN = Endings("go: ando endo e: ar er ir")
_STANDARD = Endings("""
    go: anza anze ico ici ica ice iche ichi ismo ismi abile abili ibile ibili ista iste isti istà istè istì oso osi osa
        ose mente atrice atrici ante anti
    go_ic: azione azioni atore atori
    log: logia logie
    u: uzione uzioni usione usioni
    ente: enza enze
    verb: amento amenti imento imenti
    amente: amente
    ità: ità
    iv: ivo ivi iva ive
""")
_BEHIND = {
    "go_ic": Endings("go: ic"),
    "ità": Endings("go: abil ic iv"),
    "amente": Endings("iv: iv go: os ic abil"),
}
_VERBS = Endings("""
    go: ammo ando ano are arono asse assero assi assimo ata ate ati ato ava avamo avano avate avi avo emmo enda ende
        endi endo erà erai eranno ere erebbe erebbero erei eremmo eremo ereste eresti erete erò erono essero ete eva
        evamo evano evate evi evo iamo immo irà irai iranno ire irebbe irebbero irei iremmo iremo ireste iresti irete
        irò irono isca iscano isce isci isco iscono issero ita ite iti ito iva ivamo ivano ivate ivi ivo ono uta ute
        uti uto ar ir
""")
_LAST_VOWELS = frozenset("aeioàèìò")
_SOFA = "divan"
"""The stem of "divano", which is not to become that of "diva"."""


def stem_italian(word: str) -> str:
    """The stem of a word in lower case. All accents are grave ones."""
    word = marked_between_vowels(word.translate(_GRAVE).replace("qu", "qU"), _VOWELS, "ui")
    verbs = len(_SOFA) if word.startswith(_SOFA) else region_of_verbs(word, _VOWELS)
    first, second = regions(word, _VOWELS)
    word = _without_pronoun(word, verbs)
    shorter = _without_standard(word, verbs, first, second)
    if shorter is None:
        ending, _ = _VERBS.longest(word, verbs)
        shorter = word[: len(word) - len(ending)]
    return _without_last_vowel(shorter, verbs).replace("U", "u").replace("I", "i")


def _without_pronoun(word: str, verbs: int) -> str:
    found = without_pronoun(word, _PRONOUNS, _BEFORE_PRONOUN, verbs)
    if found is None:
        return word
    rest, _, action = found
    return rest + "e" if action == "e" else rest


def _without_standard(word: str, verbs: int, first: int, second: int) -> str | None:
    """None where no such ending could be taken off."""
    ending, action = _STANDARD.longest(word)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) < {"amente": first, "verb": verbs}.get(action, second):
        return None
    if action == "iv":
        for more in ("at", "ic"):
            if not rest.endswith(more) or len(rest) - 2 < second:
                break
            rest = rest[:-2]
    return before_standard(rest, action, _BEHIND, second)


def _without_last_vowel(word: str, verbs: int) -> str:
    if word[-1:] in _LAST_VOWELS and len(word) - 1 >= verbs:
        word = word[:-1]
        if word.endswith("i") and len(word) - 1 >= verbs:
            word = word[:-1]
    if word.endswith(("ch", "gh")) and len(word) - 2 >= verbs:
        word = word[:-1]
    return word
