"""How sentences that claim nothing are told, in English and Chinese: by the words they begin with or turn around.

The longer lists of words stand in `data/claim_words.txt`.
"""

from __future__ import annotations

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["has_verb", "is_instruction", "is_placeholder", "is_research_talk", "leans_back"]

_WORDS = WordList(__package__, "claim_words.txt")
_QUOTED = lazy_pattern(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』")
_PLACEHOLDER = lazy_pattern(
    r"(?i)\b(?:tbd|tba|tbc|todo|fixme|lorem\sipsum|placeholder|n/a|xxx+|to\sbe\s(?:added|determined|completed|"
    r"confirmed|filled)|insert\s\w+\shere|goes\shere)\b"
    r"|[\[<{(]\s*(?:your|insert|add|enter|fill|claim|citation|source|name|date|number|"
    r"references?)\b[^\]>})]{0,60}[\]>})]"
    r"|\{\{|待补充|待填写|待完善|待确认|占位|此处(?:插入|填写|添加|应)|（略）|would\s(?:include|be\sinserted)\b"
)
_TALK = lazy_pattern(
    lambda: (
        r"(?i)\blet\s(?:me|us)\b|\blet['’]s\b"
        rf"|\bI(?:['’](?:ll|m|ve|d)\b|\s(?:{_WORDS.either('said of oneself')})\b)"
        rf"|\bmy\s(?:{_WORDS.either('own work')})\b"
        r"|\bsearch\sresults?\b|\b(?:more|further|additional|final|last|next|another)\s(?:specific\s)?search(?:es)?\b"
        rf"|\b(?:this|the\s(?:present|current|following|above)|our)\s(?:\w+\s){{0,3}}"
        rf"(?:{_WORDS.either('kinds of report')})\s(?:\w+ly\s)?(?:{_WORDS.either('plans of a report')})\b"
        r"|\A(?:here|below)\s(?:is|are)\b|\bas\s(?:an\sAI|a\slanguage\smodel)\b|\b(?:your|you['’]re)\s(?:question|"
        r"request|inquiry|query|asking|research)\b|\Awe(?:['’]\w+)?\s"
        r"|\b(?:we|us)\s(?:will|have\s(?:seen|discussed)|need\sto|can\ssee)\b|\bin\sthis\s(?:report|section|paper|"
        r"article|guide),?\s(?:we|I)\b"
    )
)
_TALK_ZH = lazy_pattern(
    r"让我|我(?:将|会|需要|还需|已|来|先|看到|发现|想|再|可以|注意到|了解|找到|现在|继续|的研究|的分析|尝试|进行|"
    r"认为|建议|无法|没有|们)|为您|给您|向您|您(?:提出|的问题|提到|需要的|所)|"
    r"本(?:报告|文|研究报告|调研|调查报告|章|节|综述|部分|次(?:研究|调研|搜索|检索)|研究(?:将|旨在|通过|从|基于|对|"
    r"系统|全面|综合|探讨|采用))|搜索(?:结果|信息|更多)|检索(?:结果|到|更多)|"
    r"(?:继续|进一步|再次)(?:的)?(?:搜索|检索|查询|查找|搜集|收集)|根据(?:以上|上述|目前的?|现有的?|收集到的?|"
    r"当前的?)?(?:搜索|检索|查询|信息收集)|"
    r"\A(?:最后|现在|接下来|首先|下面|然后|此外)?[，,]?(?:搜索|检索|查询|查找|继续搜|需要(?:进一步|更多|更具体|获取|"
    r"查|了解|补充))|\A(?:以下|下面)(?:是|为|将|从|对)"
)
_INSTRUCTION = lazy_pattern(
    lambda: (
        rf"(?:{_WORDS.either('commands')})"
        r"\s(?!of\b|is\b|are\b|was\b|were\b|has\b|have\b|had\b|can\b|could\b|may\b|might\b|will\b|would\b)"
        # Most verbs are nouns as well: "Heat pumps kept …", "Store sales fell". What follows tells the two apart.
        rf"|(?:{_WORDS.either('commands or nouns')})\s(?:{_WORDS.either('behind a command')})\b"
    )
)
_INSTRUCTION_ZH = lazy_pattern(
    r"\A(?:请|敬请|务必|切勿|不要|记得|注意[：:，,]|建议|确保|避免|应当?(?:该|加强|注意|避免)|尽量|可以?考虑|不妨|"
    r"鼓励|推荐)|请(?:参[见阅考]|查看|注意|访问)"
)
_VERB = lazy_pattern(lambda: rf"(?i)\S\s(?:{_WORDS.either('verbs')})\s")
_VERB_ZH = lazy_pattern(lambda: rf"[^\W\d_]{{2,}}[^。]{{0,300}}?(?:{_WORDS.either('verbs zh')})")
_URGED_ZH = lazy_pattern(lambda: rf"(?:{_WORDS.either('urged zh')})(?!.{{0,300}}(?:{_WORDS.either('not urged zh')}))")
_HAN = lazy_pattern(r"[\u3400-\u9fff]")
_LEANS = lazy_pattern(
    lambda: (
        rf"(?:(?:{_WORDS.either('openers')}),?\s)?"
        r"(?:(?:with|in|by|for|from|at|on|under|through|to|during|after|using|applying|given|based\son|unlike|beyond|"
        r"despite|within|like|building\son)\s)?"
        r"(?:it(?!\s(?:is|was|has\sbeen|remains|seems|appears)\s(?:\w+\s){0,2}(?:that|to|whether)\b)|they|he|she|"
        r"this(?!\s(?:year|century|decade)\b)|these|"
        r"those(?!\s(?:who|with|in|of|at|from|that|aged|without|having|living|under|over)\b)|that|such(?!\sas\b)|its|"
        r"their|his|hers?|both(?!\s\w+\sand\b)|each|all\sof\s(?:these|this|them)|"
        r"some\sof\s(?:these|them)|many\sof\s(?:these|them)|one\sof\s(?:these|its|their|them|the\sfirst)|the\s(?:former|"
        r"latter|above|same|aforementioned|other|others)|another|others|here|"
        r"another|likewise|similarly|the\s(?:result|results)\s(?:is|are|was|were))(?=[\s'’,])"
    )
)
_LEANS_ZH = lazy_pattern(
    r"(?:然而|此外|同时|另外|因此|而且|并且|但是?|不过|所以|而|尽管如此|与此同时|总之|例如|比如|特别是|值得注意的是|"
    r"事实上|具体来说|具体而言|相比之下|未来)?[，,]?"
    r"(?:在|从|借助|通过|根据|基于|对于?|随着|由于|按照|除了|为了|针对|与|和|作为|经过|面对)?"
    r"(?:这(?!类疾病)|那(?!不勒斯|曲|些(?:成功|没有|拥有|能够))|该(?!校(?:名|训))|它|他(?!汀)|她|其(?!他)|此(?!外|"
    r"前)|上述|以上|前者|后者|两者|二者|反之|相反|据此|对此|为此|"
    r"由此|如此|因而|从而|也就是说|换句话说|换言之|即(?!使|便|将|时)|包括|以及|或者?)"
)
_SUBJECTLESS = lazy_pattern(lambda: rf"(?:{_WORDS.either('subjectless')})\s")


def is_placeholder(text: str) -> bool:
    return _PLACEHOLDER.search(text) is not None


def is_research_talk(text: str) -> bool:
    """Talk about the research, or to the one who asked; what others say in quotes is not looked at."""
    own = _QUOTED.sub(" ", text)
    return _TALK.search(own) is not None or _TALK_ZH.search(own) is not None


def is_instruction(text: str) -> bool:
    bare = text.lstrip("\"'“( ")
    if _INSTRUCTION_ZH.search(bare) or _URGED_ZH.match(bare):
        return True
    return _INSTRUCTION.match(bare[:1].lower() + bare[1:60]) is not None


def has_verb(text: str) -> bool:
    """Of a line without a full stop: does it say something of something, or is it but a phrase?"""
    if _HAN.search(text):
        return _VERB_ZH.match(text) is not None
    return _VERB.search(f"{text} ") is not None


def leans_back(text: str) -> bool:
    """Does it open with a word for something that was named before, or without a subject at all?"""
    bare = text.lstrip("\"'“( ")
    if _SUBJECTLESS.match(bare[:1].lower() + bare[1:20]):
        return True
    return (
        _LEANS.match(bare[:1].lower() + bare[1:120]) is not None
        or _LEANS.match(bare) is not None
        or _LEANS_ZH.match(bare) is not None
    )
