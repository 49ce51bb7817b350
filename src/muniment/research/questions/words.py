"""Word tables of the router: what shows the kind of an answer, a field, a stretch of time, a dispute."""

from __future__ import annotations

import re
from typing import Literal

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.script import Written

__all__ = ["CONTROVERSY", "DOMAINS", "KINDS", "SETS", "TIMES", "Domain", "Kind", "domains_of", "kind_of", "times_of"]

Kind = Literal["comparison", "quantity", "ranking", "forecast", "why", "evaluation", "how", "definition", "survey"]
"""What kind of answer is asked for."""
Domain = Literal[
    "software", "health", "law", "finance", "science", "industry", "education", "culture", "society", "life"
]
"""The field a question is from, as far as it decides where its sources are."""


def _either(forms: str) -> re.Pattern[str]:
    """Any of the forms, which stand on lines of their own or two spaces apart."""
    return lazy_pattern("(?ai)" + "|".join(filter(None, re.split(r"\n|  +", forms))))


_TIMES_MAX = 8
KINDS: dict[Written, tuple[tuple[Kind, re.Pattern[str]], ...]] = {
    "en": (
        ("how", _either(r"^how (?:to|do|does|did|can|could|should|might)\b")),
        (
            "comparison",
            _either(
                r"""
\bcompar  \bversus\b  \bvs\b  \bdifferences?\b  \bcontrast  \bstrengths and weak
"""
            ),
        ),
        (
            "quantity",
            _either(
                r"""
\bhow (?:many|much)\b  \bmarket size\b  \bnumber of\b  \bmarket (?:share|penetration)\b
(?<!-)\bpric(?:e|es|ing)\b
"""
            ),
        ),
        (
            "ranking",
            _either(
                r"""
\bbest\b(?! practices)  \btop \w+\b  \brank  \brecommend  \boptimal
\bmost (?:effective|suitable|promising|likely|important)\b  \bwhich\b[^?]{1,60}\b(?:best|most)\b
^which\b[^?]{1,60}\bcan\b
"""
            ),
        ),
        (
            "forecast",
            _either(
                r"""
\bfuture\b  \btrends?\b  \bforecast  \bpredict  \bprojection  \boutlook\b  \bwill\b
"""
            ),
        ),
        (
            "why",
            _either(
                r"""
^why\b  \bwhy (?:do|does|did|is|are|has)\b  \bcaus(?:e|es|ed|ing)\b  \bled to\b  \breasons?\b  \bfactors\b
\bcues\b  \bsigns\b
"""
            ),
        ),
        (
            "evaluation",
            _either(
                r"""
\bimpacts?\b  (?<!after )\beffects?\b  \beffectiveness\b  \binfluence  \bevaluat  \bassess  \bfeasib
\brole of\b  \bwhether\b  \bsignificance\b  \befficacy\b  \bimplications\b  \bsupport or refute\b  \bhypothes
\bis it possible\b  ^(?:is|are|do|does|can|could|should)\b
"""
            ),
        ),
        (
            "how",
            _either(
                r"""
\bhow\b  \bmechanis  \bmethods?\b  \bways to\b  \bbest practices\b  \btechniques?\b  \bimplement  \bapproach
\bstrateg  \bprinciples?\b  \bkey technolog
"""
            ),
        ),
        (
            "definition",
            _either(
                r"""
\bwhat precisely\b  \bdefin  ^what (?:is|are)\b  \bexplanation of\b  \bmeaning of\b
"""
            ),
        ),
    ),
    "zh": (
        (
            "comparison",
            _either(
                r"""
比较(?![强高低大小好难明想为])  对比  区别  差异  异同  优劣  优缺点  \bvs\b
"""
            ),
        ),
        (
            "quantity",
            _either(
                r"""
多少  数量  比重  比例  占比  用量  份额  规模  人数  定量  量化  准确率
"""
            ),
        ),
        (
            "ranking",
            _either(
                r"""
最有(?:可能|潜力|研究|前景)  最好  前十  前\d+  排名  推荐  哪一个  建议
"""
            ),
        ),
        ("forecast", _either(r"未来  趋势  预测  走势  前景  什么时候  何时  将来  距离实现")),
        ("why", _either(r"为什么  原因  因素  动力  成因  为何")),
        (
            "evaluation",
            _either(
                r"""
影响  评估  是否  能否  会不会  有没有  能不能  可行  作用  效果  难度  多大  可能性  风险
"""
            ),
        ),
        (
            "how",
            _either(
                r"""
如何  怎样  怎么  方案  策略  方法  路径  机制  原理  模式  技术路线  实现
"""
            ),
        ),
        ("definition", _either(r"是什么  什么是  定义  含义  概念")),
    ),
}
"""In the order in which they decide; what shows none of them is a survey."""

DOMAINS: dict[Domain, re.Pattern[str]] = {
    "finance": _either(
        r"""
\binvest(?:s|ing|ed|ments?|ors?)?\b  (?<!labor )(?<!labour )\bmarkets?\b  \bfinanc  \bfintech\b  \bbank  \binsur
\bcompan(?:y|ies)\b  \bfirms?\b  \bquant(?:itative)?\b  \bmanufacturers\b  \bproduct development\b  金融  投资
保险  公司  融资  企业  黄金  房地产  财政  收入  市场  商业化  供应商  票房  行业
"""
    ),
    "software": _either(
        r"""
\bsoftware\b  \bdatabases?\b  \b(?:My|Postgre)?SQL(?:ite)?\b
\bRust\b  \bAPIs?\b  \bprotocols?\b  \bKubernetes\b  \bK8S\b
\bplugins?\b  \bopen.source\b  \bJava\b  \bPython\b  \bSaaS\b  \bHTTP\b  \bcloud\b  \breinforcement learning\b
软件  算法  低代码  云厂商  开源  编程  prometheus  大模型  开发流程
"""
    ),
    "health": _either(
        r"""
\bdisease  \bfasting\b  \bweight loss\b  \bvaccin  \bobes  \bdrugs?\b  \bpatients?\b  \bclinical\b  \btherap
\bmedic  \bcancer\b  \bhealth\b  \bdiet  \bprobiotic  \bgut\b  \bsurgery\b  细胞  临床  疾病  药物  医  健康
心理  自闭症  营养  食谱  正畸  缺血
"""
    ),
    "law": _either(
        r"""
\blegal\b  \blaws?\b  \bliabilit  \bregulat  \bcopyright  \bcourts?\b  \bcase law\b  \bcompliance\b  法律  刑罚
死刑  监管  知识产权  法规  司法  政策
"""
    ),
    "science": _either(
        r"""
\bquantum\b  \bgenes?\b  \bphotonic  \betching\b  \becolog  \bspecies\b  \bevolution  \bspace\b  \bocean
\bphysic  \bchemi  \bmicrobi  \bauctions?\b  \bresearch progress\b  量子  材料  催化  半导体  拉曼  缓蚀  分子
数学  论文  课题组  物理  化学  电场  计算化学
"""
    ),
    "industry": _either(
        r"""
\bmanufactur  \bengineering\b  \bcontrol(?:lers?)?\b  \bsensors?\b  \bvehicles?\b  \bmotor\b  \bchip\b  \bSRAM\b
\bdevices?\b  \btrain\b  \btransit\b  \bhardware\b  \bUAVs?\b  制造  工艺  设备  芯片  轨道交通  电驱  污水
自来水  水务  自动化  电子学  具身智能  动力系统
"""
    ),
    "education": _either(
        r"""
\beducation  \bteach(?:ers?|ing)?\b  \bschools?\b  \bclassroom  \bstudents?\b  \blearning guidance\b  教育  学生
课堂  高校  教师  人才  就业  学校  竞赛
"""
    ),
    "culture": _either(
        r"""
\bfilms?\b  \bmanga\b  \bhistor  \bliterature\b(?! review)  \bmusic  \bsutra\b  \bnarrative  \bnovel\b
\bfashion\b  \bNetflix\b  \banime\b  历史  瓷器  宋代  唐代  明代  清代  古代  文学  爵士  音乐  博物馆  电影
老子  学者  文明  珠宝  艺术  《  殖民  东方学
"""
    ),
    "society": _either(
        r"""
\bpopulation\b  \bremote work\b  \bproductivity\b  \bworkers?\b  \belderly\b  \blabou?r\b  \bsocial\b
\bsocioeconomic\b  \bcountries\b  \bgovernments?\b  \bnations?\b  \bcommunity\b  \binterpersonal\b
\bmisinformation\b  社会  阶层  中产  政府  国家  地方政府  人口  中小学生  女性  旅客
"""
    ),
    "life": _either(
        r"""
\btravel  \bcocktails?\b  \bsmart home\b  \bskin\b  \bparenting\b  \bbadminton\b  \bsports?\b  \bhobb  旅游
游戏  \bgames?\b  食谱  孩子  兴趣  体育  美容
"""
    ),
}

TIMES: dict[Written, re.Pattern[str]] = {
    "en": _either(
        r"""
\b(?:from|between) (?:the )?(?:1[5-9]|20)\d\ds? (?:to|and|until) (?:the )?(?:1[5-9]|20)\d\ds?\b
\bfrom (?:the )?(?:1[5-9]|20)\d\ds? (?:to|until) (?:now|today|the present)\b
\b(?:1[5-9]|20)\d\d ?[-–—] ?(?:1[5-9]|20)\d\d\b
\b(?:since|until|by|in|before|after|as of) (?:the )?(?:early |late |mid-?)?(?:1[5-9]|20)\d\ds?\b
\b(?:(?:over|in|for|during) )?(?:the )?(?:past|last|next|coming|recent|previous) (?:\w+ ){0,2}(?:years?|decades?)\b
\b(?:(?:over|in|for|during) )?(?:the )?(?:past|last|next|coming|recent) (?:\w+ ){0,2}(?:months?|century|quarters?)\b
\b(?:following|since|after|before|during) World War (?:II|I|2|1|Two|One)\b
\b(?:since|after|before|during) the (?:Cold War|pandemic|financial crisis)\b
\b(?:the )?(?:19|20)th century\b|\b21st century\b
"""
    ),
    "zh": _either(
        r"""
(?:\d{2}|\d{4})年代(?:至今|以来)?  (?:自|从)?\d{4} ?年?(?:[-—–~至到] ?\d{4} ?年?|至今|以来)
\d{4} ?年(?:之?后|之?前|起)?  (?:自)?\d{1,2}世纪(?:初|末|中叶)?(?:以来|至今)?
(?:过去|过往|最近|近|未来|今后) ?\d{1,4}(?:[-—–~至到]\d{1,3})? ?年(?:内|来|间|之内)?
(?:过去|过往|最近|近|未来|今后) ?[一二三四五六七八九十两几数至到]{1,7} ?年(?:内|来|间|之内)?
历代|近年来?|近几年
"""
    ),
}
"""Stretches of time, as they are written."""

CONTROVERSY: dict[Written, re.Pattern[str]] = {
    "en": _either(
        r"""
\bethic  \brisks?\b  \bdebat  \bshould (?:we|the|a|an|governments?|states?)\b  \bpros and cons\b  \bsafety\b
\bregulat  \bcontrovers  \bdisput  \bcritici[sz]  \bban(?:s|ned|ning)?\b  \bliabilit  \bresponsibilit  \bharm
\bsupport or refute\b  \bdetrimental\b  \bhomogeni[sz]  \bideolog  \binstrumentali[sz]  \bwhether\b
\bstrengths and weak  \bdisruption  \blimitations?\b
"""
    ),
    "zh": _either(
        r"""
伦理  风险  争议  争论  是否  利弊  安全(?!区域|凸)  监管  废除  替代  取代  会不会  能否  该不该  应不应该
优缺点  还是
"""
    ),
}

SETS: dict[Written, re.Pattern[str]] = {
    "en": _either(
        r"""
\btop (?:\d+|three|five|ten|twenty|hundred)\b
\b(?:major|main|leading|largest|wealthiest|key) (?:[\w-]+ ){0,3}(?:firms|companies|manufacturers|players|vendors)\b
\b(?:major|main|leading|largest|wealthiest|key) (?:[\w-]+ ){0,3}(?:products|groups|governments|countries|teams)\b
\b(?:various|different|diverse) (?:countries|companies|firms|vendors)\b
"""
    ),
    "zh": _either(
        r"""
前(?:十|\d+|三|五|二十|百)  主要(?:研究团队|供应商|企业|厂商|公司|机构)  代表性(?:公司|企业|国家)  头部\w{0,6}
各(?:家|公司|课题组|企业|国)  活跃的研究课题组
"""
    ),
}
"""Sets that somebody has to draw the line of: the top ten, the major firms."""


def kind_of(text: str, language: Written) -> Kind:
    """The kind of answer that a question, or a part of one, asks for."""
    return next((kind for kind, shows in KINDS[language] if shows.search(text)), "survey")


def domains_of(text: str) -> tuple[Domain, ...]:
    """The field of which most is said, and one of which much is said; as in the table where two have the same."""
    counts = {domain: len(pattern.findall(text)) for domain, pattern in DOMAINS.items()}
    ranked = sorted((domain for domain, count in counts.items() if count), key=lambda domain: -counts[domain])
    return tuple(
        domain for domain in ranked[:2] if domain == ranked[0] or counts[domain] >= max(2, counts[ranked[0]] / 2)
    )


def times_of(text: str, language: Written) -> tuple[str, ...]:
    """The stretches of time that are named, each once, as written."""
    return tuple(dict.fromkeys(" ".join(found[0].split()) for found in TIMES[language].finditer(text)))[:_TIMES_MAX]
