"""Small closed tables of the fact checker: verbs, pronouns, negation, modality, words that link clauses.

English in full; Chinese and Korean for negation. They say what sort of word a word is, never what a text is about.
"""

from __future__ import annotations

from functools import cache

from muniment.core.text.stems import stem

__all__ = [
    "ARTICLES",
    "AUXILIARY",
    "CIRCUMSTANCE_BEFORE",
    "GENDER",
    "LINKS",
    "MODALITY",
    "OPPOSED_LINKS",
    "PASSIVE",
    "PERIODS",
    "POSSESSIVE",
    "denying_stems",
    "negates",
    "verb_stems",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATION = _words("not no never without nobody none neither nor nothing nowhere cannot barely hardly")
_DENYING = "deny lack fail unable refuse avoid prevent stop unlikely impossible reject decline absence free"
_NEGATION_ZH = ("不", "没", "沒", "无", "無", "非", "未", "别")
_NEGATION_KO = ("않", "없", "아니", "못하", "못했")
_NEGATION_KO_WORDS = ("안", "못")

GENDER = {
    word: gender
    for gender, words in {
        "he": "he him his himself",
        "she": "she her hers herself",
        "they": "they them their theirs themselves",
        "it": "it its itself",
    }.items()
    for word in words.split()
}
"""A pronoun of the third person → whom it can stand for."""

POSSESSIVE = _words("his her their its")

MODALITY = {
    word: degree
    for degree, words in enumerate(
        (
            "might may could possibly perhaps maybe allegedly reportedly",
            "can should likely probably",
            "must will certainly",
        )
    )
    for word in words.split()
}
"""Words that say how sure something is → 0 possible, 1 likely, 2 certain."""

LINKS = {
    form: sense
    for sense, words in {
        "cause": "because since due owing",
        "contrast": "although though despite but",
        "earlier": "before until prior",
        "later": "after following",
        "condition": "if unless",
    }.items()
    for word in words.split()
    for form in (word, stem(word))
}
"""A word that links two clauses, or its stem → how."""

OPPOSED_LINKS = {"cause": "contrast", "contrast": "cause", "earlier": "later", "later": "earlier"}

AUXILIARY = _words(
    "is are was were be been being has have had having do does did will would can could may might must shall should to "
    "he she they it we i you who not never also"
)
"""What a verb stands behind."""
ARTICLES = _words("the a an his her their its our my of this that these those")
"""What a verb never stands behind."""
PASSIVE = _words("is are was were be been being get gets got")
CIRCUMSTANCE_BEFORE = _words("in at on from near inside outside during since until after before for")
"""What tells when or where an event was stands behind one of these."""
PERIODS = frozenset(map(stem, _words("second minute hour day week month year decade century mile km foot ft metre")))
"""Units of time and distance."""

_VERBS = """
abandon abduct accept accompany accuse achieve acknowledge acquire act add address admit adopt advise affect agree
aim allege allow announce answer apologise apologize appeal appear apply appoint approach approve argue arrange
arrest arrive ask assault assist assume attack attempt attend attract avoid award back ban base be beat become beg
begin behave believe belong bet bite blame blast block blow boast book born borrow bounce break bring broadcast
build burn burst buy call campaign cancel capture care carry cast catch cause celebrate challenge change charge
chase chat check choose cite claim clash clean clear climb close collapse collect combine come comment commit
compare compete complain complete concede concentrate conclude condemn conduct confess confirm confront connect
consider consist contact contain continue contract contribute control convert convict convince cook cope count cover
crash create criticise criticize cross cry cut damage dance date deal decide declare decline decrease defeat defend
define delay deliver demand demonstrate deny depart depend describe deserve design destroy detain detect determine
develop die differ direct disappear discover discuss dismiss display dispute divorce do donate doubt draft drag draw
dream dress drink drive drop drown earn eat edit educate eject embrace emerge employ enable encounter encourage end
endorse enforce engage enjoy ensure enter escape establish estimate evacuate evaluate examine exceed exchange
exclude execute exist expand expect experience explain explode explore export expose express extend face fail fall
fear feature feed feel fight file fill film find finish fire fit fix flee float fly focus follow force forecast
forget forgive form found free freeze gain gather generate get give go grab grant greet grow guarantee guard guess
guide hail halt hand handle hang happen harass hate have head heal hear help hide hint hire hit hold honour hope
host hug hunt hurt identify ignore imagine impact implement import impose impress improve include increase indicate
infect infer influence inform inherit injure insist inspect inspire install insult intend interview introduce invade
invent invest investigate invite involve issue jail join joke judge jump justify keep kick kidnap kill kiss knock
know label lack land last laugh launch lead learn leave lend let lie lift light like limit link list listen live
lock look lose love lower maintain make manage mark marry match matter mean measure meet mention miss mix mock
monitor mourn move murder name need negotiate note notice obey object observe obtain occur offer open operate oppose
order organise organize outperform overcome owe own paint park participate pass pay perform permit persuade phone
pick plan plant play plead please pledge plunge point pose possess post postpone pour praise pray predict prefer
prepare present preserve press pretend prevent print proceed process produce promise promote prompt propose
prosecute protect protest prove provide publish pull pump punch purchase pursue push put qualify question quit race
raid raise rank rape reach react read realise realize reassure rebuild recall receive recognise recognize recommend
record recover recruit reduce refer reflect refuse regain regard register regret reject relate relax release rely
remain remember remind remove renew rent repair repeat replace reply report represent request require rescue
research resign resist resolve respond rest restore restrict result resume retain retire return reveal review ride
ring rise risk rob roll rule run rush sack sail save say scare schedule score scream search secure see seek seem
seize select sell send sentence separate serve set settle sever shake shape share shelter shift shine ship shock
shoot shop shout show shut sign sing sink sit slam sleep slide slip slow smash smell smile smoke snap solve sort
speak spend spill split spot spread stab stand star stare start state stay steal step stick stop store storm strike
struggle study submit succeed sue suffer suggest supply support suppose surge surprise surrender surround survive
suspect suspend swear sweep swim switch tackle take talk target taste teach tear tell tend terminate test thank
think threaten throw tie top touch tour trade train transfer transform trap travel treat trigger try turn understand
unite unveil update upload urge use value vanish view violate visit vote vow wait wake walk wander want warn wash
waste watch wear weigh welcome win wipe wish withdraw witness wonder work worry wound wrap write yell
"""


@cache
def verb_stems() -> frozenset[str]:
    """Stems of the common verbs."""
    return frozenset(map(stem, _VERBS.split()))


@cache
def denying_stems() -> frozenset[str]:
    """Stems of words that say that something is not so without a "not"."""
    return frozenset(map(stem, _DENYING.split()))


def negates(text: str, key: str) -> bool:
    """Does the word deny something? `text` as it stands, `key` as it is compared."""
    if text.isascii():
        return key in _NEGATION
    if "\uac00" <= text[0] <= "\ud7a3":
        return text in _NEGATION_KO_WORDS or any(part in text for part in _NEGATION_KO)
    return text[0] in _NEGATION_ZH or key == "not"
