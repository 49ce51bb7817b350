"""Which words of a request may be others in the next of its form: numbers, ids and names, and no word that says what is
to be done.

A name is one that is known, one behind a title, one behind another name, or an English one behind `of`, `for` or `from`
with no noun behind it (`the ledger of Amsel`). `Approved`, `French` and `Gold` are none (`data/kinds.txt`), nor is what
stands behind `as`, `in` or `into`. Where it is in doubt whether a word is a name, it is none. Pure.
"""

from __future__ import annotations

from functools import cache

from muniment.core.limits import remembered
from muniment.core.text.analyzer import MONTHS, stop_words
from muniment.core.text.latin_names import plain
from muniment.core.text.names import is_everyday_word, is_name
from muniment.core.text.patterns import lazy_pattern, plain_letters
from muniment.core.text.text_language import text_language
from muniment.core.text.word_lists import WordList
from muniment.learning.hinting.forms import Form, Token, make_form

__all__ = ["request_key_form"]

_LISTS = WordList(__package__, "kinds.txt")
_WORD = lazy_pattern(r"[^\W\d_]+")
_LAST_WORD = lazy_pattern(r"([\w-]+)\.?\s*$")
_WITH_UNIT = lazy_pattern(r"(\d[\d.:_]*)([A-Za-zµ]+)$")
_LETTERS_FIRST = lazy_pattern(r"[a-z]{2,}-(?=\d+$)")
_NAME_SHAPE = lazy_pattern(r"(?:[^\W\d_][’'])?[^\W\d_][^\W\d_A-Z]+(?:-[^\W\d_]+)*$")
_NO_NOUN_NEXT = lazy_pattern(
    r"(?i)(?:'s\b|’s\b|\s*$|\s*[,.;:!?)\]–—]|\s+-\s|\s+(?:and|or|from|for|with|on|at|by|until|since|before|after|if|as|no|nr)\b"
    r"|\s+(?-i:[A-Z])|\s+#?\d)"
)
_BEHIND_SHORT_TITLE = lazy_pattern(r"(?i)\b(?:mr|mrs|ms|dr|prof|mme|mlle|sra?|sig|dhr|mevr)\.\s*$")
_CHANGE_NEXT = lazy_pattern(r"\s+(?:in)?to\b")
"""Behind a word that tells from what something is changed: `from Open to Closed`."""
_OWNING = frozenset(("of", "for", "from"))
_TOLD_HOW = frozenset(
    ("as", "in", "into", "als", "ins", "im", "en", "comme", "dans", "como", "come", "em", "как", "на", "в")
)
"""Behind these a word says how or into what a thing is made, whoever is called so: `in Julia`."""
_TITLES = frozenset(
    ("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "herr", "herrn", "frau", "familie", "firma",
     "monsieur", "madame", "mme", "mlle", "señor", "señora", "sr", "sra", "don", "doña", "signor", "signora", "sig",
     "senhor", "senhora", "meneer", "mevrouw", "dhr", "mevr", "господин", "госпожа")
)  # fmt: skip


@remembered(4096)
def request_key_form(request: str) -> Form:
    """The form of a request that has nothing said around it any more."""
    words = _WORD.findall(request)
    is_shouted = len(words) > 1 and not any(word != word.upper() for word in words)
    is_one_case = is_shouted or request == request.lower()
    language = "english" if is_one_case else _language(request, words)

    def may_vary(token: Token) -> bool | slice:
        if token.in_code:
            return False
        if token.is_id:
            return _open_part(token.text)
        if token.starts_sentence:
            return token.is_capital and _BEHIND_SHORT_TITLE.search(token.before) is not None
        if is_one_case:
            return _is_known(token.text) and _word_before(token) not in _TOLD_HOW
        return token.is_capital and _is_named(token, language)

    return make_form(request, may_vary)


def _open_part(text: str) -> bool | slice:
    """What of a word with digits may be another: not the unit of a number, nor small letters before it."""
    if text.casefold() in _entries("with digits"):
        return False
    if (found := _WITH_UNIT.match(text)) and found[2].casefold() in _entries("units"):
        return slice(0, found.end(1))
    if found := _LETTERS_FIRST.match(text):
        return slice(found.end(), len(text))
    return True


def _is_named(token: Token, language: str) -> bool:
    """Is a word that begins with a capital a name?"""
    folded = plain_letters(token.text.casefold())
    if folded in MONTHS:
        return True
    before = _word_before(token)
    if before in _TITLES:
        return True
    if folded in _small_words(language) or before in _TOLD_HOW:
        return False
    if _is_known(token.text):
        return True
    if _is_kind(folded) or _NAME_SHAPE.match(token.text) is None:
        return False
    if token.goes_on:
        return not any(sign.isdigit() for sign in before)
    if language != "english" or before not in _OWNING or _CHANGE_NEXT.match(token.after):
        return False
    return _NO_NOUN_NEXT.match(token.after) is not None


def _word_before(token: Token) -> str:
    """The word right before it, in small letters; nothing where a sign stands between."""
    last = _LAST_WORD.search(token.before)
    return "" if last is None else last[1].casefold()


def _is_known(word: str) -> bool:
    spelled = plain(word)
    return is_name(spelled) and not is_everyday_word(spelled)


def _is_kind(folded: str) -> bool:
    return folded in _entries("kinds") or folded.endswith(tuple(_entries("endings")))


@cache
def _entries(section: str) -> frozenset[str]:
    return frozenset(_LISTS.entries(section))


@cache
def _small_words(language: str) -> frozenset[str]:
    return stop_words("english") | stop_words(language)


def _language(request: str, words: list[str]) -> str:
    return text_language(request, [plain_letters(word.casefold()) for word in words]) or "english"
