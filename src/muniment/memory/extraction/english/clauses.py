"""Where English clauses begin and end, and what silences them: questions, suppositions, reports, stories, quotes."""

# ruff: noqa: E501 - a table of words reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Sequence

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.grammar import Clause, Silence
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.extraction.views import View

__all__ = ["clauses", "denies", "quoted", "silence"]

_SUBJECT = r"(?:i|i'm|i've|i'd|i'll|my|we|we're|we've|our|he|he's|she|she's|they|they're|it|it's|you|you're|there's|there|that|that's|this|his|her|their|your)"
_BOUNDARY = re.compile(
    r"[;:()\[\]…•|*~=<>{}\"“”]+|[^\w\s,.'’&/%$€£#@+-]|\s-+\s|-\s|(?<=\s)-(?=[a-z])|[—–]|,|(?<=[a-z])\.(?=\s)"
    r"|\s(?:but|because|although|though|whereas|except|plus|while|since|yet|considering|given that|given)(?=\s)"
    rf"|\s(?:and|so|or|then)(?=\s(?:also\s|now\s|currently\s|just\s)?{_SUBJECT}\b)"
    r"|(?P<run>\b[a-z0-9']+)(?P<on>\s)(?=(?:i'm|i've|i|my)\s)"
)
_WORDS = WordList(__package__, "clauses.txt")
_BINDS = frozenset(_WORDS.words("binds"))

_OPENS_QUESTION = re.compile(
    r"\s*(?:(?:so|and|but|ok|okay|well|hey|hi|oh|also|now|btw|please|then|just|or|hmm|um|like|wait|plus),?\s)*"
    r"(?:who|who's|whom|whose|what|what's|which|where|where's|why|how|how's|can|could|do|does|did|is|are|am|was|were|will|would|should|shall|"
    r"may|might|has|have you|have we|have they|had|isn't|aren't|don't you|doesn't|didn't|won't|wouldn't|couldn't|can't you|shouldn't|any|anything|"
    r"got any|know any|ever|wanna|what about|how about|thoughts|suggestions|recommendations|when (?:is|are|do|does|did|will|was|were|can|should)|"
    r"tell me|remind me|do i|am i)(?![\w'])"
)
_STATES = re.compile(
    r"\s*(?:(?:and|but|so|also|since|because|as)\s)?(?:i'm (?!not sure|wondering|curious)|i am |i've |i have |i live |i work |i love |i like |i hate |my |i usually |i always |i prefer |i don't )"
)
_WONDERS = re.compile(
    r"\b(?:i (?:was |am |'m )?wonder(?:ing)?|i'm wondering|i'm curious|not sure|i don't know|i forgot|do you know|can you)\b"
)
_DOUBT = re.compile(
    r"""(?x) \b (?:
    if|unless|wish(?:es|ed)?|would|could|might|should|maybe|perhaps|probably|possibly|supposedly|allegedly|suppose
    |imagine|pretend(?:ing)?|hypothetical(?:ly)?|almost|nearly|dream(?:s|t|ed|ing)?|hop(?:e|es|ing)|plan(?:s|ning|ned)?
    |want(?:s|ed|ing)?|going\sto(?!\s(?:the|a|an|my|concerts|museums|church|school|work)\b)|thinking|guess|consider(?:ing)?|used\sto|kidding|jok(?:e|ing)|sarcasm
    |jk|j/k|just\skidding|back\swhen|formerly|previously|back\sthen|at\sthe\stime|when\si\swas|as\sa\s(?:child|kid|teen|teenager)
    |whether|someday|one\sday|next\s(?:week|month|year|summer)|tomorrow|will|shall|act\sas|let's|more\sthan|less\sthan
    |for\snow|temporarily|until|till|as\sif|as\sthough|in\sanother\slife|may\s(?:be|have|move|live|start|get)|think\si|lookalike
    |doubt|scared|afraid|worried|fear(?:s|ed)?|(?:don't\s)?believe\si|suspect|(?:loved|hated|miss(?:ed)?|remember|enjoyed|idea\sof)\s(?:living|working|having|being)
    |about\sto|supposed\sto|trying\sto|have\sto|had\sto|need\sto|needed\sto|able\sto|in\smy\sdream
    ) \b | '(?:ll|d)\b
    """
)
_CONDITION = re.compile(
    r"\b(?:if|unless|suppose|imagine|pretend|wish|what if|as if|let's say|say that|assume|assuming|were i|i doubt|don't believe|don't think|(?:'m|am) (?:scared|afraid|worried)|i fear|i suspect)\b"
)
_REPORT = re.compile(
    r"(?<!\bi )(?<!\bi've )(?<!\bwe )\b(?:said|says|saying|told|tells|claims|claimed|wrote|writes|reads|asked|asks|thinks|thought|believes|believed|heard|insists|"
    r"insisted|swears|joked|jokes|mentioned|reckons|according to|the line (?:was|is)|assumes|assumed|goes like|lyrics?|quote|quoting|posted|tweeted|texted)\b"
    r"|\b(?:people|they|everyone|everybody|friends|others|some|folks|most|who) (?:say|think|tell|claim|call|assume|reckon)\b"
    r"|\bi (?:heard|read|thought|dreamt|dreamed|pretended|joked|lied)\b"
)
_LASTING = re.compile(
    r"\b(?:role-?\s?play(?:ing)?|pretend (?:you|i|to|that|we)|act as|imagine (?:you|i|that|we)|you are (?:a|an|my) [a-z]+ (?:who|and|assistant)|"
    r"(?:write|tell|make up|create|continue|compose|generate|draft) (?:me )?(?:(?:a|an|the|some|my) )?(?:[a-z-]+ ){0,3}(?:story|poem|song|novel|script|screenplay|dialogue|scene|fanfic|"
    r"fan fiction|monologue|rap|haiku|limerick|lyrics|play|tale|backstory|persona|conversation|skit)|"
    r"forwarded message|system prompt|(?:^|\s)(?:from|subject|q|a)\s?: |the (?:log|e-?mail|letter|note|sign|message|readme) says|sent (?:me |us )?this|(?:^|: )(?:review|proofread|critique|grade|draft|reply to|respond to)\b|fix (?:the|my) grammar|"
    r"for (?:the|a|my) (?:play|role|part|movie|film|musical|audition)|my character|the character|main character|the protagonist|in my (?:novel|story|book|screenplay|game|dream|script)|in the (?:novel|story|film|movie|book|game|play|song|script|show|series)|"
    r"once upon a time|fictional|in character|play the role|playing the role|let's (?:pretend|imagine|role)|for the sake of argument|hypothetically)\b"
)
_PASSING = re.compile(
    r"\b(?:translat(?:e|ion|ing)|how (?:do|would|to) (?:you |i |we )?(?:say|write|spell|pronounce)|for example|e\.g|such as|example sentence|the sentence|this sentence|following sentence|"
    r"(?:rephrase|paraphrase|proofread|correct|rewrite|summari[sz]e|edit|fix|check|analy[sz]e) (?:this|the following|my (?:text|sentence|paragraph|email|essay|letter)|it|the)|"
    r"(?:quote|phrase|saying|lyrics?|caption|headline|subject line|title)\s?:|write (?:me )?(?:a|an|the|my) [a-z -]{0,40}?(?:email|letter|essay|message|text|bio|post|tweet|caption|review|speech|paragraph))\b"
)
_SUPPOSES = re.compile(
    r"\s*(?:(?:ok|okay|so|now|and|let's|lets|just|please)\s)*(?:assume|assuming|suppose|supposing|say|imagine|pretend)(?: that)?,? (?:i|i'm|i've|my|we|we're|our)\b"
)
"""What is put for the sake of it, with all that it takes for granted."""
_ATTRIBUTION = re.compile(
    r"\s*(?:(?:so|or|as|that's what|which is what|like) )?(?:(?!i\b|i've\b|we\b)[a-z']+ (?:(?!i\b)[a-z']+ ){0,2}?)?(?:said|says|told|tells|claims|claimed|wrote|writes|joked|joke|texted|replied|answered|yelled|shouted|whispered|insisted|"
    r"insists|announced|tweeted|goes|was all (?:he|she|they) said|lol jk|jk|just kidding|kidding|not)(?=$|\s(?!(?:me|us)\s(?:that|to|i|how|he|she))|[!.])"
)
"""Words behind a clause that say whose it was, or that it was none: `…, my wife told the clerk`."""
_SAYING = re.compile(r"\b(?:i|i'm|i've|my|me|we|you|he|she|is|was|are)\b")
_QUOTE = re.compile(
    r"[\"“„«「『](?P<double>[^\"”»」』]{0,400})[\"”»」』]?|(?<![\w])['‘](?P<single>[^'’\n]{2,300})['’](?!\w)"
)
_NOT = re.compile(
    r"\b(?:not|never|no longer|hardly|barely|scarcely|neither|nor|without|cannot|nobody|no|ain't)\b|n't\b"
)


_OPENINGS = frozenset(_WORDS.entries("openings"))


def _is_opening(before: str) -> bool:
    """Is all that stands before a clause a greeting or a word that leads to it?"""
    parts = [part.strip() for part in _PARTS.split(before)]
    return all(not part or part in _OPENINGS or (" " not in part and part.isalpha()) for part in parts)


_PARTS = re.compile(r"[,.:!-]")
_NEXT_THING = re.compile(r"\s(?:so|and)\s")
"""What is said behind it is another thing, and doubts itself alone."""


def denies(view: View, start: int, end: int) -> bool:
    """Is there a no in a stretch?"""
    return _NOT.search(view.text, start, end) is not None


def silence(view: View, sentence: Sentence) -> Silence | None:
    """From where on a sentence, or all that follows, is no word of the speaker's own."""
    lasting = _LASTING.search(view.text)
    if lasting is not None:
        return Silence(lasting.start(), is_lasting=True)
    supposes = _SUPPOSES.match(view.text)
    if supposes is not None:
        return Silence(supposes.start())
    passing = _PASSING.search(view.text)
    if passing is None:
        return None
    leads_on = sentence.text.rstrip().endswith(":") or "translat" in passing[0] or "sentence" in passing[0]
    return Silence(passing.start(), is_lasting=leads_on)


def quoted(view: View) -> Sequence[tuple[int, int]]:
    """Stretches in quotation marks in which somebody speaks; a title in quotes is none."""
    found = []
    for match in _QUOTE.finditer(view.text):
        inner = match["double"] if match["double"] is not None else match["single"]
        is_title = len(inner.split()) <= 5 and not re.match(r"(?:i|i'm|my|i've)\b", inner)
        if not is_title:
            found.append(match.span())
    return found


def clauses(view: View, sentence: Sentence) -> list[Clause]:
    """The clauses of a sentence, each with whether it is asked or doubtful."""
    text = view.text
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match["run"] is not None and (match["run"] in _BINDS or match["run"].endswith("ing")):
            continue
        stop = match.end("run") if match["run"] is not None else match.start()
        if stop > start:
            spans.append((start, stop))
        start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    asked = _asked_from(text, spans, is_question=sentence.is_question)
    found: list[Clause] = []
    is_doubtful = False
    for number, (begin, end) in enumerate(spans):
        cut = _NEXT_THING.search(text, begin + 8, end)
        own = _DOUBT.search(text, begin, cut.start() if cut is not None else end) is not None
        reported = _REPORT.search(text, begin, end) is not None or _WONDERS.search(text, begin, end) is not None
        is_doubtful = is_doubtful or reported or _CONDITION.search(text, begin, end) is not None
        is_asked = number >= asked and not (number > asked and _STATES.match(text, begin, end))
        if number and _ATTRIBUTION.match(text, begin, end):
            found = [clause._replace(is_doubtful=True) for clause in found]
        found.append(Clause(begin, end, is_asked, own or is_doubtful, is_first=_is_opening(text[:begin])))
    return found


def _asked_from(text: str, spans: Sequence[tuple[int, int]], *, is_question: bool) -> int:
    """The number of the first clause that is part of a question."""
    for number, (begin, end) in enumerate(spans):
        if _OPENS_QUESTION.match(text, begin, end):
            return number
    if not is_question:
        return len(spans)
    return 0 if len(spans) == 1 else len(spans) - 1
