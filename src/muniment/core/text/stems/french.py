"""The Snowball stemmer of French."""

from __future__ import annotations

from muniment.core.text.stems.endings import Endings, behind_vowel, regions

__all__ = ["stem_french"]

_VOWELS = frozenset("aeiouyâàëéêèïîôûù")
_STANDARD = Endings("""
    go: ance iqUe isme able iste eux ances iqUes ismes ables istes
    ic: atrice ateur ation atrices ateurs ations
    log: logie logies
    u: usion ution usions utions
    ent: ence ences
    ement: ement ements
    ité: ité ités
    if: if ive ifs ives
    eaux: eaux
    aux: aux
    oux: oux
    euse: euse euses
    issement: issement issements
    amment: amment
    emment: emment
    ment: ment ments
""")
_BEHIND_EMENT = Endings("iv: iv eus: eus go: abl iqU ièr: ièr Ièr")
_BEHIND_ITÉ = Endings("abl: abil iqU: ic go: iv")
_I_VERBS = Endings("""
    go: îmes ît îtes i ie ies ir ira irai iraIent irais irait iras irent irez iriez irions irons iront is issaIent
        issais issait issant issante issantes issants isse issent isses issez issiez issions issons it
""")
_VERBS = Endings("""
    ions: ions
    go: é ée ées és èrent er era erai eraIent erais erait eras erez eriez erions erons eront ez iez eais
    e: âmes ât âtes a ai aIent ait ant ante antes ants as asse assent asses assiez assions
    ais: ais aise aises
""")
_RESIDUE = Endings("ion: ion i: ier ière Ier Ière go: e")
_KEEPS_S = frozenset("aiouès")
_BEFORE_OUX = frozenset("bhjlnp")
_DOUBLED = ("enn", "onn", "ett", "ell", "eill")


def stem_french(word: str) -> str:
    """The stem of a word in lower case."""
    word = _marked(word)
    verbs = _region_of_verbs(word)
    first, second = regions(word, _VOWELS)
    word, is_done = _without_standard(word, verbs, first, second)
    if not is_done:
        shorter = _without_i_verb(word, verbs)
        if shorter is None:
            shorter = _without_verb(word, verbs, second)
        word, is_done = (word, False) if shorter is None else (shorter, True)
    if not is_done:
        word = _without_residue(word, verbs, second)
    elif word.endswith("Y"):
        word = word[:-1] + "i"
    elif word.endswith("ç"):
        word = word[:-1] + "c"
    if word.endswith(_DOUBLED):
        word = word[:-1]
    return _plain(_without_accent(word))


def _marked(word: str) -> str:
    """Vowels that are read as consonants as capitals; a vowel with a diaeresis behind a mark of its own."""
    found = list(word.replace("ë", "He").replace("ï", "Hi")) if "ë" in word or "ï" in word else list(word)
    for place, letter in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else ""
        if letter in _VOWELS:
            if after and after in "ui" and place + 2 < len(found) and _is_vowel(found, place + 2):
                found[place + 1] = after.upper()
            elif after == "y":
                found[place + 1] = "Y"
            elif letter == "y" and after and _is_vowel(found, place + 1):
                found[place] = "Y"
        elif letter == "q" and after == "u":
            found[place + 1] = "U"
    return "".join(found)


def _is_vowel(letters: list[str], place: int) -> bool:
    """The mark of a diaeresis stands for the vowel behind it."""
    return letters[place] in _VOWELS or letters[place] == "H"


def _plain(word: str) -> str:
    word = word.replace("He", "ë").replace("Hi", "ï").replace("H", "")
    return word.replace("I", "i").replace("U", "u").replace("Y", "y")


def _region_of_verbs(word: str) -> int:
    """Behind the third letter, if the first two are vowels or the word starts in one of a few ways; else behind the
    first vowel that is not the first letter."""
    if len(word) > 2 and (
        (word[0] in _VOWELS and word[1] in _VOWELS)
        or word.startswith(("par", "col", "tap"))
        or (word.startswith("ni") and word[2] in _VOWELS)
    ):
        return 3
    return behind_vowel(word, _VOWELS, 1)


def _without_standard(word: str, verbs: int, first: int, second: int) -> tuple[str, bool]:
    """And whether that was all: adverbs go on as the participles that they are made of."""
    ending, action = _STANDARD.longest(word)
    rest = word[: len(word) - len(ending)]
    size = len(rest)
    if action in ("amment", "emment"):
        return (rest + action[0] + "nt" if size >= verbs else word), False
    if action == "ment":
        return (rest if size > verbs and rest[-1] in _VOWELS else word), False
    found: str | None = None
    if action in ("go", "ic", "ité", "if"):
        found = _without_more(rest, action, second) if size >= second else None
    elif action in ("log", "u", "ent"):
        found = rest + action if size >= second else None
    elif action == "ement":
        found = _behind_ement(rest, verbs, first, second) if size >= verbs else None
    elif action == "eaux":
        found = rest + "eau"
    elif action == "aux":
        found = rest + "al" if size >= first else None
    elif action == "oux":
        found = rest + "ou" if rest[-1:] in _BEFORE_OUX else None
    elif action == "euse":
        found = rest if size >= second else rest + "eux" if size >= first else None
    elif action == "issement":
        found = rest if size >= first and rest and rest[-1] not in _VOWELS else None
    return (word, False) if found is None else (found, True)


def _without_more(rest: str, action: str, second: int) -> str:
    if action == "if" and rest.endswith("at") and len(rest) - 2 >= second:
        rest, action = rest[:-2], "ic"
    if action == "ic" and rest.endswith("ic"):
        return rest[:-2] if len(rest) - 2 >= second else rest[:-2] + "iqU"
    if action == "ité":
        more, new = _BEHIND_ITÉ.longest(rest)
        if more and len(rest) - len(more) >= second:
            return rest[: -len(more)]
        if new in ("abl", "iqU"):
            return rest[: -len(more)] + new
    return rest


def _behind_ement(rest: str, verbs: int, first: int, second: int) -> str:
    more, action = _BEHIND_EMENT.longest(rest)
    if not more:
        return rest
    shorter = rest[: -len(more)]
    size = len(shorter)
    if action == "ièr":
        return shorter + "i" if size >= verbs else rest
    if size < second:
        return shorter + "eux" if action == "eus" and size >= first else rest
    if action == "iv" and shorter.endswith("at") and size - 2 >= second:
        return shorter[:-2]
    return shorter


def _without_i_verb(word: str, verbs: int) -> str | None:
    ending, _ = _I_VERBS.longest(word, verbs)
    rest = word[: len(word) - len(ending)]
    if not ending or len(rest) <= verbs or rest[-1] in _VOWELS or rest[-1] == "H":
        return None
    return rest


def _without_verb(word: str, verbs: int, second: int) -> str | None:
    ending, action = _VERBS.longest(word, verbs)
    rest = word[: len(word) - len(ending)]
    if not ending or (action == "ions" and len(rest) < second):
        return None
    if action == "ais" and (rest.endswith(("auv", "épl")) or (rest.endswith("al") and len(rest) == 3)):
        return None
    return rest[:-1] if action == "e" and rest.endswith("e") and len(rest) - 1 >= verbs else rest


def _without_residue(word: str, verbs: int, second: int) -> str:
    if word.endswith("s") and len(word) > 1 and (word.endswith("His") or word[-2] not in _KEEPS_S):
        word = word[:-1]
    ending, action = _RESIDUE.longest(word, verbs)
    if not ending:
        return word
    rest = word[: -len(ending)]
    if action == "ion":
        return rest if len(rest) >= second and len(rest) > verbs and rest[-1] in "st" else word
    return rest + "i" if action == "i" else rest


def _without_accent(word: str) -> str:
    """An é or è before the last consonants is an e."""
    place = len(word)
    while place and word[place - 1] not in _VOWELS:
        place -= 1
    if place and place < len(word) and word[place - 1] in "éè":
        return word[: place - 1] + "e" + word[place:]
    return word
