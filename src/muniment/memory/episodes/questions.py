"""Questions asked in earnest: not quoted, not code, not for effect; and whether what follows answers them. Pure.

Rules of words, English first, with the usual forms of Chinese and Korean. Where they are in doubt a question counts.
"""

from __future__ import annotations

import re

from muniment.core.text.sentences import sentence_spans

__all__ = ["puts_off", "real_questions", "takes_back"]

QUESTION_CHARS_MAX = 300
"""Longer sentences are not shown as questions."""
FRAGMENT_WORDS = 3
"""`The culprit? A missing comma.`: so few words ask nobody where the same breath goes on."""

TAKEN_BACK_CHARS = 500
"""Who takes a question back says so at once."""

_MASKED = re.compile(
    r"```.*?(?:```|\Z)"  # a block of code
    r"|^(?: {4}|\t|[ ]{0,3}>)[^\n]*"  # a line of code, or of somebody else's mail
    r"|`[^`\n]{1,300}`"
    r"|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|「[^」\n]{1,300}」|『[^』\n]{1,300}』",
    re.DOTALL | re.MULTILINE,
)
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+", re.IGNORECASE)
_CLOSING = ")]）」』”\"'’*_ "
"""What may follow the sign that ends a question."""
_UNMARKED = re.compile(
    r"(?i)^(?:(?:hi|hey|hello|ok(?:ay)?|and|so|also|then)[, ]+)?(?:please[, ]+)?"
    r"(?:can|could|would|will) you (?!know\b)\w+"
    r"|[吗嗎][。.]?$"
    r"|(?:나요|까요|습니까|인가요|은가요|던가요)[.]?$"
)
"""Asked without a question mark."""
_STARTS = re.compile(
    r"(?i)^(?:(?:and|but|so|also|then|ok(?:ay)?|hey|hi|well|please)[, ]+)*"
    r"(?:who|whose|whom|what|which|when|where|why|how|is|are|am|was|were|do|does|did|can|could|would|will|shall|should"
    r"|may|might|must|has|have|had|isn|aren|don|doesn|didn|can't|won|any|anyone|anybody|for|to|in|on|by|since|until)\b"
)
_FOR_EFFECT = re.compile(
    r"(?i)^(?:(?:and|but|so|well|oh|ha|man|hey)[, ]+)*"
    r"(?:who (?:knows|cares|would have thought|would['’]ve thought|doesn['’]t)|why (?:me|not|bother|oh why)|so what"
    r"|guess what|you know(?: what)?|you see|know what|really|seriously|right|ok(?:ay)?"
    r"|yes|no|huh|eh|hm+|oh|what|remember|isn['’]t (?:it|that) \w+"
    r"|what could (?:possibly )?go wrong|how hard can (?:it|that) be|what(?:['’]s| is) not to (?:like|love)"
    r"|what was i thinking|are you kidding(?: me)?|is (?:this|that) a joke|need i say more)[\W_]*$"
    r"|\bhow (?:cool|great|crazy|weird|nice|awesome|lucky|bad|funny|sweet) is (?:that|this)\W*$"
    r"|\bisn['’]t that (?:great|nice|something|funny)\W*$"
    r"|[,，] ?(?:ok(?:ay)?|huh|eh|yeah|hm+)\W*$"
    r"|谁知道|誰知道|谁在乎|难道|難道|何必|누가 알겠|그렇지 않나|말이 돼"
)
"""Asked for effect: nobody is to answer."""
_COURTESY = re.compile(
    r"(?i)\banything else\b|\bhow (?:can|may) i (?:help|assist)\b"
    r"|\b(?:can|may) i (?:help|assist) (?:you )?(?:with )?(?:any|some)"
    r"|^(?:does|did) (?:that|this) (?:help|make sense|answer)|^(?:is|was) (?:that|this) (?:clear|helpful|ok(?:ay)?)\W*$"
    r"|^(?:shall|should) i (?:go on|continue)\W*$|还有(?:什么|其他)|有什么可以帮|도와드릴|더 필요하신|다른 문의"
)
"""What an assistant asks to be polite."""
_OWN_ANSWER = re.compile(
    r"(?i)^(?:because\b|turns out\b|it turns out\b|the answer\b|answer:|simple[:.]|easy[:.]|因为|因為|왜냐하면)"
)
_HEARD = (
    r"(?:(?:ok(?:ay)?|sure|right|alright|all right|good question|great question|good point|hm+|well|thanks|thank you"
    r"|got it|understood|of course|certainly|absolutely|no problem|sorry|will do|on it)\b[\s,.!:;–—-]*)*"
)
_PUTS_OFF = re.compile(
    rf"(?i)^{_HEARD}(?:$"
    r"|(?:i['’]ll|i will|let me|i['’]m going to|i am going to|i (?:need|have) to|i['’]d have to|we['’]ll|let['’]s)\s+"
    r"(?:first |just |quickly |also |now |go and |have to |need to |try to )*"
    r"(?:check|look|find|get back|send|book|call|ask|follow|confirm|update|prepare|write|remind|let you know"
    r"|schedule|try|see|investigate|dig|search|read|run|review|think|figure|start|begin"
    r"|take a look|have a look|open|inspect)\b"
    r"|(?:i (?:really )?(?:don['’]t|do not) know|i have no idea|no idea|not sure|i['’]m not sure|i am not sure"
    r"|i can(?:not|['’]t) (?:say|tell)|unclear|hard to say)\b"
    r"|(?:one|just a|a) (?:moment|second|sec|minute)\b|hold on\b|hang on\b|bear with\b"
    r"|give me a (?:moment|second|sec|minute)\b"
    r"|(?:i['’]m |i am )?(?:still )?(?:checking|looking|working|searching|thinking|investigating)\b"
    r"|(?:好的?|嗯|行)?[，,。 ]*(?:$|请?稍等|等一下|我?还?(?:不知道|不清楚|不确定)"
    r"|我(?:会|先|来|去|马上|再)*(?:查|看|问|找|确认|確認|试|想))"
    r"|(?:네|예|알겠습니다)?[,. ]*(?:$|잠시만|잘 모르|모르겠|알아보"
    r"|(?:확인|조사|검토|문의)[^.?!]{0,12}(?:겠|게요|볼게))"
    r")"
)
_TAKES_BACK = re.compile(
    r"(?i)(?:^|[.!,;] *)(?:(?:oh|ah|ok(?:ay)?|actually|no|thanks)[, ]+)*"
    r"(?:never ?mind|forget (?:it|that|about (?:it|that))|scrap that"
    r"|ignore (?:that|my (?:last )?question)|no longer (?:needed|relevant|necessary)"
    r"|not (?:needed|necessary|relevant) any ?more|(?:i )?(?:don['’]t|do not) need (?:it|that) any ?more"
    r"|i(?:['’]ve| have)? (?:found|solved|figured) (?:it|that)|found it|solved it|figured it out)\b"
    r"|算了|不用了|不需要了|됐어요|됐습니다|필요 ?없"
)


def real_questions(text: str, *, of_assistant: bool = False) -> list[str]:
    """The sentences of a turn that ask somebody something, as they were said."""
    masked = _masked(text)
    spans = sentence_spans(masked)
    found: list[str] = []
    for at, (start, end) in enumerate(spans):
        after = masked[slice(*spans[at + 1])] if at + 1 < len(spans) else ""
        if end - start <= QUESTION_CHARS_MAX and _asks(masked[start:end], after, of_assistant):
            found.append(text[start:end])
    return found


def puts_off(text: str) -> bool:
    """Does a turn answer nothing: only say that somebody will look, that it is not known, or ask in turn?"""
    masked = _masked(text)
    said = [masked[start:end] for start, end in sentence_spans(masked)]
    return bool(said) and all(_is_marked(each) or _PUTS_OFF.search(each.rstrip(" .!。…")) for each in said)


def takes_back(text: str) -> bool:
    """Does a turn say that what was asked need not be answered?"""
    return _TAKES_BACK.search(_masked(text[:TAKEN_BACK_CHARS])) is not None


def _masked(text: str) -> str:
    """The text, as long as it is, without what is code or somebody else's words."""

    def hide(found: re.Match[str]) -> str:
        is_block = found[0].startswith(("```", "    ", "\t")) or found[0].lstrip().startswith(">")
        return "".join("\n" if sign == "\n" else " " if is_block else "x" for sign in found[0])

    return _MASKED.sub(hide, text)


def _is_marked(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING).endswith(("?", "？"))


def _asks(sentence: str, after: str, of_assistant: bool) -> bool:
    if not any(sign.isalpha() for sign in sentence):
        return False
    if not _is_marked(sentence):
        return _UNMARKED.search(sentence) is not None
    last = list(_ADDRESS.finditer(sentence))[-1:]
    if last and last[0].end() >= len(sentence.rstrip()) and not _STARTS.search(sentence):
        return False  # the sign belongs to the address
    if _FOR_EFFECT.search(sentence) or (of_assistant and _COURTESY.search(sentence)):
        return False
    if after and _OWN_ANSWER.search(after):
        return False
    is_fragment = len(sentence.split()) <= FRAGMENT_WORDS and sentence.isascii() and not _STARTS.search(sentence)
    return not (after and is_fragment and not _is_marked(after))
