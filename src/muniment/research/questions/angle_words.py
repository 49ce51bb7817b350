"""What a research lead calls an angle, by kind of answer, field and track, in English and Chinese; where to look."""

from __future__ import annotations

from muniment.core.text.script import Written
from muniment.research.questions.words import Domain, Kind

__all__ = [
    "CHECKS",
    "CHECKS_ANY",
    "DOUBTS",
    "DOUBTS_ANY",
    "MEMBERS",
    "PLATFORMS",
    "PROFILES",
    "SIDES",
    "SPECIAL",
    "SURVEYS",
    "VIEWS",
    "VIEWS_ANY",
    "Words",
]

Words = dict[Written, str]


def _both(en: str, zh: str) -> Words:
    return {"en": en, "zh": zh}


MEMBERS = _both("Who belongs and by which criteria", "名单与入选标准")
PROFILES = _both("Profiles and latest facts", "概况与最新事实")
SIDES = _both("Side by side on the same criteria", "同一口径下的横向比较")

SPECIAL: tuple[tuple[str, Words, Words], ...] = (
    (
        r"(?i)^(?:whether|is|are|was|were|can|could|should|would|will|do|does|did)\b|是否|能否|能不能|会不会|有没有",
        _both("Evidence for and against", "正反两方面的证据"),
        _both("Strongest case for the opposite answer", "相反结论的最有力论据"),
    ),
    (
        r"(?i)^how (?!to\b|(?:\w+ )+(?:can|could|should|might) be\b)|^[^，]{2,}如何",
        _both("What is known and on what evidence", "已知结论与证据"),
        _both("Rival explanations and open doubts", "其他解释与存疑之处"),
    ),
    (
        r"(?i)\brecommend|\bguidelines?\b|建议$|对策",
        _both("Options and what they have achieved", "可选方案与实施成效"),
        _both("Why such recommendations failed elsewhere", "同类建议在别处失败的原因"),
    ),
    (
        r"(?i)\b(?:evolution|history|development) (?:of|from)\b|演变|历代|发展历程",
        _both("Stages and turning points", "发展阶段与转折点"),
        _both("Contested periods and rival accounts", "分期争议与不同说法"),
    ),
)
"""Forms of a matter that call for other words than its kind: for the standard and for the contrarian track."""

SURVEYS: dict[Domain, Words] = {
    "law": _both("Rules in force and how they are applied", "现行规则及其适用"),
    "culture": _both("Main works, themes and readings", "主要作品、主题与解读"),
    "finance": _both("Players, positions and latest figures", "主要参与者、格局与最新数据"),
    "education": _both("Practice, programmes and results", "实践、项目与成效"),
    "society": _both("Current situation and key figures", "现状与关键数据"),
    "industry": _both("Technologies, suppliers and deployments", "技术、供应商与应用情况"),
    "health": _both("Current evidence and practice", "现有证据与实践"),
    "life": _both("Current practice and options", "现行做法与可选方案"),
}
"""What a survey looks at where its field is one of these, and it is not research that is surveyed."""

VIEWS: dict[Kind, Words] = {
    "comparison": SIDES,
    "quantity": _both("Figures, definitions and how they are counted", "数据、定义与统计口径"),
    "ranking": _both("Candidates and selection criteria", "候选对象与评选依据"),
    "forecast": _both("Drivers, forecasts and scenarios", "驱动因素、预测与情景"),
    "why": _both("Causes and the evidence for each", "各项成因及其证据"),
    "evaluation": _both("Measured effects and how they were found", "实测效果与论证方法"),
    "how": _both("Methods in use and how well they work", "现有方法及其效果"),
    "definition": _both("Definitions, scope and main positions", "定义、范围与主要观点"),
    "survey": _both("State of the field and main contributions", "现状与主要成果"),
}
"""Of the standard track, where the question itself gives no narrower one."""
VIEWS_ANY = (
    VIEWS["survey"],
    _both("Key actors, cases and examples", "关键主体与典型案例"),
    _both("Costs, conditions and constraints in practice", "实践中的成本、条件与约束"),
    _both("Open problems and next steps", "尚未解决的问题与下一步"),
    _both("History and turning points", "发展历程与转折点"),
    _both("Differences between regions and groups", "地区与群体差异"),
)

CHECKS: dict[Domain, Words] = {
    "software": _both("Specifications, source code and issue trackers", "规范、源代码与问题追踪"),
    "health": _both("Trials, cohort data and clinical guidelines", "临床试验、队列数据与诊疗指南"),
    "law": _both("Statutes, judgments and official guidance", "法规、判例与官方文件"),
    "finance": _both("Filings, market data and official statistics", "公告、市场数据与官方统计"),
    "science": _both("Original experiments and their data", "原始实验与数据"),
    "industry": _both("Standards, patents and test reports", "标准、专利与测试报告"),
    "education": _both("School-level studies and official data", "学校层面的实证研究与官方数据"),
    "culture": _both("Primary texts, archives and first-hand accounts", "原始文本、档案与一手记述"),
    "society": _both("Official statistics and survey data", "官方统计与调查原始数据"),
    "life": _both("Field data and controlled tests", "实地数据与对照测试"),
}
"""Of the independent track: primary sources, found without the framing of others."""
CHECKS_ANY = (
    _both("Key claims traced to primary sources", "关键结论的一手来源核查"),
    _both("Evidence from other countries and languages", "其他国家与语种的证据"),
    _both("First-hand accounts of practitioners", "从业者的一手记述"),
    _both("Key figures recomputed from raw data", "由原始数据重算关键数字"),
    _both("Systematic reviews and what they rest on", "系统综述及其依据"),
)

DOUBTS: dict[Kind, Words] = {
    "comparison": _both("Where the usual comparison misleads", "常见对比的误导之处"),
    "quantity": _both("Disputed figures and why estimates differ", "有争议的数字与估算分歧"),
    "ranking": _both("What the usual rankings hide", "常见排名掩盖了什么"),
    "forecast": _both("Failed forecasts and reasons for doubt", "落空的预测与存疑之处"),
    "why": _both("Rival explanations and confounders", "其他解释与混杂因素"),
    "evaluation": _both("Null results, harms and critics", "无效结果、负面影响与批评意见"),
    "how": _both("Where the usual methods fail", "常用方法的失效之处"),
    "definition": _both("Contested readings and counter-examples", "有争议的解读与反例"),
    "survey": _both("Overlooked and failed cases", "被忽视的与失败的案例"),
}
"""Of the contrarian track: what speaks against the expected answer."""
DOUBTS_ANY = (
    _both("Critics and objections still unanswered", "批评者与尚未回应的质疑"),
    _both("Costs, risks and who loses", "代价、风险与受损方"),
    _both("Results that did not replicate", "未能复现的结果"),
    _both("Interests behind the sources", "信息来源背后的利益关系"),
    _both("Assumptions that would change the answer", "会改变结论的假设"),
)

PLATFORMS: dict[Domain | None, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "software": (("docs", "github", "blog"), ("standards", "github", "papers"), ("forum", "github", "news")),
    "health": (("papers", "guidelines", "reviews"), ("trials", "papers", "statistics"), ("papers", "news", "forum")),
    "law": (
        ("law", "papers", "news"),
        ("law", "court_decisions", "official_documents"),
        ("papers", "news", "ngo_reports"),
    ),
    "finance": (
        ("filings", "market_reports", "news"),
        ("filings", "statistics", "official_documents"),
        ("news", "forum", "papers"),
    ),
    "science": (
        ("papers", "reviews", "preprints"),
        ("papers", "datasets", "preprints"),
        ("papers", "preprints", "forum"),
    ),
    "industry": (("papers", "market_reports", "docs"), ("standards", "patents", "papers"), ("news", "forum", "papers")),
    "education": (
        ("papers", "reports", "news"),
        ("statistics", "papers", "official_documents"),
        ("papers", "news", "forum"),
    ),
    "culture": (("papers", "books", "news"), ("archives", "books", "interviews"), ("papers", "reviews", "forum")),
    "society": (
        ("papers", "reports", "statistics"),
        ("statistics", "official_documents", "datasets"),
        ("papers", "news", "ngo_reports"),
    ),
    "life": (("news", "guides", "reviews"), ("papers", "statistics", "datasets"), ("forum", "reviews", "news")),
    None: (("papers", "news", "docs"), ("papers", "statistics", "official_documents"), ("papers", "news", "forum")),
}
"""Field → where the standard, the independent and the contrarian track look first."""
