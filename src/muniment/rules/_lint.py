"""Lint (RC-18): errors keep a rule from the gate, warnings do not. It checks wording and shape only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from unicodedata import category, name, normalize

from muniment.contracts.rules import RuleApplicability, RuleRecord
from muniment.core.canonical import child_path
from muniment.core.policy import LintPolicy
from muniment.core.predicate_nodes import Compare, Junction, Node, Not, Truth
from muniment.core.predicates import Predicate, contradiction, parse
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput
from muniment.learning.keys import name_key
from muniment.rules._records import LintFinding
from muniment.rules._select import PREDICATES, CountTokens
from muniment.verify.results import parse_bucket_key

# == findings =========================================================================================================


class Meaning(NamedTuple):
    """The meaning of a code."""

    severity: Literal["error", "warning"]
    says: str


def _all(severity: Literal["error", "warning"], says: dict[str, str]) -> dict[str, Meaning]:
    return {code: Meaning(severity, words) for code, words in says.items()}


FINDINGS: Mapping[str, Meaning] = MappingProxyType(
    _all(
        "error",
        {
            # wording
            "body_empty": "a rule says something",
            "body_too_long": "the body has more tokens than a rule may take of a prompt",
            "title_too_long": "the title has more characters than a title may have",
            "control_character": "a control character stands in the text",
            "hidden_character": "a character that nobody sees, or that turns the text round, stands in it",
            "mixed_script": "a word is made of letters of two scripts that look alike",
            "injection": "the text gives orders to whoever reads it, beyond the task",
            "role_marker": "the text passes for another part of the conversation",
            "secret": "the text holds what looks like a credential",
            "mailbox": "a mailbox in a rule: what is learnt from runs names none",
            "takes_private_data": "the advice is to keep, show or send what is private",
            "link_out": "an address that can carry data away, or that runs something",
            "runs_remote_code": "a command that fetches and runs what it got",
            "games_the_verifier": "the advice is to pass the check rather than to do the task",
            "forbidden_pattern": "the policy forbids these words",
            "opaque_text": "a long run of signs that nobody can read",
            "internal_words": "words of the library's own book-keeping, which tell an agent nothing",
            # applicability
            "predicate_invalid": "not a predicate",
            "too_many_predicates": "more predicates than a rule may have",
            "never_holds": "the predicate can never hold",
            "predicates_contradict": "the predicates can never hold together",
            "never_applies": "the predicate is false wherever the domain, family and buckets let the rule apply",
            "bucket_key_invalid": "not a bucket key",
        },
    )
    | _all(
        "warning",
        {
            "link": "an address in a rule: what stands there may change, and no policy signs for it alone",
            "host": "the name of a host in a rule: no policy signs for it alone",
            "always_holds": "the predicate holds wherever it can be asked, and keeps the rule from nothing",
            "unknown_before_run": "not known before a run acts, so the rule is hardly ever chosen",
            "bucket_never_applies": "the rule cannot apply in this bucket, so that naming it is no use",
            "applies_to_all": "the rule applies to every run: it names no domain, family, bucket or condition",
            "unknown_condition": "a key of the applicability that nobody reads: the rule applies without it",
            "guardrail_not_first": "a guardrail should say that it comes first",
            "no_regression_test": "without a regression test the gate keeps it temporary",
            "no_counterexample_test": "without a counterexample the gate keeps it temporary",
        },
    )
)


def finding(code: str, path: str, detail: str = "") -> LintFinding:
    """Build a finding from its code's message and a detail."""
    meaning = FINDINGS[code]
    message = f"{meaning.says}: {detail}" if detail else meaning.says
    return LintFinding(code=code, path=path, message=message, severity=meaning.severity)


# == conditions =======================================================================================================

_BUCKETS = "$.applicability.bucket_keys"
_NAMES = ("domain_tag", "task_family")
"""Compared case-insensitively in a rule's applicability, and exactly in a predicate."""
_AFTER = (
    "cost.",
    "verifier.",
    "experiment.reward.",
    "experiment.exec_",
    "rollout_select.",
    "tree_search.node_expanded",
    "tree_search.depth_max",
    "memory_fold.",
    "praxis.",
    "memory_recall.",
    "sandbox.turns",
    "sandbox.actions_n",
    "sandbox.files_",
    "sandbox.external_fetch_n",
    "sandbox.exec_fail_n",
)
_AFTER_NAMES = frozenset({"tools", "selected_rule_ids", "failure_cluster_id", "reason_codes", "violated_constraints"})
_OPPOSITE: dict[str, Any] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


_READ_BESIDE = frozenset({"constraints"})
"""Parts of an applicability read elsewhere: micro-regressions are made from its constraints."""


def condition_findings(where: RuleApplicability, predicates_max: int) -> Iterator[LintFinding]:
    """Check predicates, bucket keys, and how broad they leave the rule."""
    texts = where.predicates or ()
    if len(texts) > predicates_max:
        yield finding("too_many_predicates", PREDICATES, f"{len(texts)}, at most {predicates_max}")
    parsed: list[tuple[str, Predicate]] = []
    for place, text in enumerate(texts[:predicates_max]):
        path = child_path(PREDICATES, place)
        try:
            parsed.append((path, parse(text, path=path)))
        except InvalidInput as error:
            yield finding("predicate_invalid", path, error.message)
    for path, predicate in parsed:
        yield from _of_one(path, predicate)
    yield from _together([predicate for _, predicate in parsed])
    yield from _against_place(where, parsed)
    is_narrowed = any(not _always_holds(predicate) for _, predicate in parsed)
    if not (where.domain_tag or where.task_family or where.bucket_keys or is_narrowed):
        yield finding("applies_to_all", "$.applicability")
    for key in sorted((where.model_extra or {}).keys() - _READ_BESIDE):
        yield finding("unknown_condition", child_path("$.applicability", key), repr(key[:60]))


def _of_one(path: str, predicate: Predicate) -> Iterator[LintFinding]:
    about = contradiction(predicate)
    if about is not None or _is_constant(predicate, Truth.FALSE):
        yield finding("never_holds", path, predicate.text)
    elif _always_holds(predicate):
        yield finding("always_holds", path, predicate.text)
    late = [name for name in predicate.fields if name.startswith(_AFTER) or name in _AFTER_NAMES]
    if late:
        yield finding("unknown_before_run", path, ", ".join(late))


def _together(predicates: Sequence[Predicate]) -> Iterator[LintFinding]:
    """Find conditions that can each hold but not all together."""
    if any(contradiction(predicate) is not None for predicate in predicates):
        return
    parts = tuple(dict.fromkeys(part for predicate in predicates for part in predicate.conjuncts))
    if len(parts) > 1 and (about := contradiction(Predicate(Junction("&&", parts), predicates[0].schema))) is not None:
        yield finding("predicates_contradict", PREDICATES, f"about {about}")


def _against_place(where: RuleApplicability, parsed: Sequence[tuple[str, Predicate]]) -> Iterator[LintFinding]:
    """Find predicate parts that are false for every run that the domain, family and buckets allow."""
    known = {"domain_tag": where.domain_tag, "task_family": where.task_family}
    base = {name: value for name, value in known.items() if value}
    places: dict[str | None, dict[str, Any]] = {}
    for index, key in enumerate(where.bucket_keys or ()):
        try:
            bucket = parse_bucket_key(key)
        except InvalidInput as error:
            yield finding("bucket_key_invalid", child_path(_BUCKETS, index), error.message)
            continue
        if where.domain_tag and name_key(where.domain_tag) != name_key(bucket.domain):
            yield finding("bucket_never_applies", child_path(_BUCKETS, index), f"not of the domain {where.domain_tag}")
        places[key] = {"bucket_key": key, "impact_level": bucket.impact, "user_clarity": bucket.clarity, **base}
    if not places:
        places[None] = base
    for path, predicate in parsed:
        if contradiction(predicate) is not None:
            continue
        shut = [place for place, features in places.items() if _is_shut(predicate, features)]
        if len(shut) == len(places):
            yield finding("never_applies", path, predicate.text)
        else:
            yield from (finding("bucket_never_applies", _BUCKETS, f"{place}: {predicate.text}") for place in shut)


def _is_shut(predicate: Predicate, features: dict[str, Any]) -> bool:
    """Return whether the predicate is false. Only parts whose features are all known count: the rest may be present in
    a run.
    """
    parts = [Predicate(node, predicate.schema) for node in predicate.conjuncts]
    known = [part for part in parts if part.fields and features.keys() >= set(part.fields)]
    folded = features | {name: features[name].casefold() for name in _NAMES if name in features}
    return all(any(part.holds(each) is Truth.FALSE for part in known) for each in (features, folded))


def _always_holds(predicate: Predicate) -> bool:
    return all(_part_always_holds(Predicate(node, predicate.schema)) for node in predicate.conjuncts)


def _part_always_holds(part: Predicate) -> bool:
    """Return whether it is true for every run, as with alternatives whose negations contradict each other."""
    if _is_constant(part, Truth.TRUE):
        return True
    if not isinstance(part.tree, Junction) or part.tree.op != "||":
        return False
    opposites = tuple(map(_opposite, part.tree.parts))
    return contradiction(Predicate(Junction("&&", opposites), part.schema)) is not None


def _is_constant(predicate: Predicate, truth: Truth) -> bool:
    return not predicate.fields and predicate.holds({}) is truth


def _opposite(node: Node) -> Node:
    if isinstance(node, Compare) and node.op in _OPPOSITE:
        return Compare(_OPPOSITE[node.op], node.left, node.right)
    return node.operand if isinstance(node, Not) else Not(node)


# == wording ==========================================================================================================


class Checks(NamedTuple):
    """Text checks provided by other rooms."""

    reads_like_instructions: Callable[[str], bool]
    find_secret: Callable[[str], str | None]
    """The kind of secret in a text, if any."""
    forbidden: tuple[str, ...] = ()


_HIDDEN = frozenset(
    [
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0x2800),
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFFC),
        *range(0xE0000, 0xE1000),
    ]
)
"""Zero-width, bidirectional and invisible characters, variation selectors, tags."""
_JOINING = frozenset("\u200c\u200d\ufe0e\ufe0f")
_PLAIN = frozenset("\n\t")
_LOOKS = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнАВЕКМНОРСТУХІЈЅονρικταΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwkmtbhABEKMHOPCTYXIJSovpiktaABEZHIKMNOPTYX",
)
_FOREIGN = frozenset(chr(code) for code in _LOOKS)
_WORD = lazy_pattern(r"[^\W\d_]{2,}")
_LATIN = lazy_pattern("[A-Za-z\u00c0-\u024f]")
_OPAQUE = lazy_pattern(r"[A-Za-z0-9+/=_-]{100}")
_ROLE = lazy_pattern(
    r"(?m)<\|[a-z_]{1,32}\|>|</?(?:assistant|user|human|developer|tool)>"
    r"|^[ \t>#*-]{0,8}(?:assistant|user|human|developer|system)[ \t]{0,4}:"
)
_LINK = lazy_pattern(
    r"\b(?:https?|ftp|wss?|file|data|javascript|vbscript):[^\s<>\"')\]]{1,2000}|\bwww\.[^\s<>\"')\]]{2,2000}"
)
_CARRIES = lazy_pattern(
    r"^(?:file|data|javascript|vbscript|wss?|ftp):|[?{}$@]|%7b|//(?:\d{1,3}\.){3}\d{1,3}\b|//\[|//(?:0x|\d{8})"
    r"|\b(?:webhook|ngrok|requestbin|pastebin|burpcollaborator|interact\.sh)"
)
_MAILBOX = lazy_pattern(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_HOST = lazy_pattern(
    r"\b(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|io|co|ai|dev|app|xyz|info|biz|ru|cn|kr|jp|de|uk|fr|in|me|cc|tv|site|online"
    r"|top|link|click|live|cloud|onion|example|test|invalid|local|localhost)\b(?!\()"
)
_PRIVATE = (
    r"(?:pass(?:word|code|phrase)s?|credentials?|(?:credit\s{1,4}|bank\s{1,4})?card\s{1,4}(?:numbers?|details?)|cvv|pin\s{1,4}(?:numbers?|codes?)"
    r"|api\s{1,4}keys?|access\s{1,4}tokens?|social\s{1,4}security\s{1,4}numbers?|ssns?|account\s{1,4}numbers?|private\s{1,4}keys?)"
)
_COLLECTS = lazy_pattern(
    r"\b(?:keep|store|save|note|collect|record|remember|log|repeat|say|tell|share|send|mail|e-?mail|forward|post|upload|copy"
    r"|include|add|append|write|show|print|disclose)\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,5}?" + _PRIVATE
)
_TAKES = (
    r"(?:the\s{1,4})?(?:whole\s{1,4}|full\s{1,4})?(?:conversation|transcript|chat\s{1,4}history|system\s{1,4}prompt"
    r"|what\s{1,4}the\s{1,4}(?:customer|user|client)\s{1,4}(?:said|told|wrote))"
)
_SENDS = lazy_pattern(r"\b(?:send|mail|e-?mail|forward|post|upload|transmit|leak|exfiltrate|copy)\s{1,4}" + _TAKES)
_IMAGE = lazy_pattern(r"!\[[^\]]{0,200}\]\s{0,4}\(|<(?:img|iframe|script|link|object|embed)\b")
_REMOTE = lazy_pattern(
    r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,300}\|\s{0,4}(?:sudo\s{1,4})?(?:ba|z|da|k)?sh\b"
    r"|\b(?:ba|z|da|k)?sh\s{1,4}<\(\s{0,4}(?:curl|wget)\b"
    r"|\b(?:eval|exec)\s{0,4}\(\s{0,4}(?:requests\.get|urlopen|fetch|atob|base64)"
    r"|\bbase64\s{1,4}(?:-d|--decode)\b[^\n]{0,100}\|\s{0,4}(?:ba|z|da|k)?sh\b|\brm\s{1,4}-[a-z]{0,4}[rf][a-z]{0,4}\s{1,4}[/~]"
)
_CHECKS = r"(?:tests?|checks?|verifiers?|verification|graders?|validations?|assertions?|linters?|guardrails?|safety)\b"
_SOME = (
    r"(?:(?:the|all|any|every|each|these|those|this|that|its|your|our|failing|failed|slow|flaky|hidden|remaining|other"
    r"|unit|integration|regression|output|format|safety|of)\s{1,4}){0,4}"
)
_GAMES = lazy_pattern(
    r"\b(?:skip|disable|bypass|delete|remove|comment\s{1,4}out|silence|turn\s{1,4}off|stub\s{1,4}out|ignore)\s{1,4}"
    + _SOME
    + _CHECKS
    + r"|\b(?:(?:say|claim|pretend)\s{1,4}(?:that\s{1,4})?|(?:report|state|write|print|answer)\s{1,4}that\s{1,4})"
    + _SOME
    + _CHECKS
    + r"\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,2}?(?:pass(?:es|ed)?|succeed(?:s|ed)?|green)\b"
    + r"|\b(?:edit|change|rewrite|weaken|loosen)\s{1,4}"
    + _SOME
    + _CHECKS
    + r"\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,4}?pass\b"
    + r"|\bhard-?code\s{1,4}(?:[\w'’-]{1,40}\s{1,4}){0,3}?(?:expected|outputs?|answers?|results?)\b"
)
_INTERNAL = lazy_pattern(
    r"\blook\s{1,4}(?:first\s{1,4})?at\s{1,4}(?:say|ask|answer|call)\b(?!\s{1,4}\w)"
    r"|(?<![\w:/.-])(?:(?:first|recovered|repeat|own|steps):[a-z_]|order:[\w.-]{1,80}>|args:[\w.-]{1,80}\("
    r"|arg:[\w.-]{1,80}=|check:(?:made|none|last)\b|error:left\b)"
    r"|\b(?:trace|run|evt|event|rule|tac|tactic|mem|draft|test|gate|replay|prm|canary|fold|plan|fc)_[0-9a-f]{12,64}\b"
)
"""Internal steps that are not tools (`say`), feature names (`first:search`), and ids."""
_SAID = ("$.title", "$.body")
_NEGATED = lazy_pattern(
    r"(?:\b(?:do\s{1,4}not|don['’]t|never|must\s{1,4}not|should\s{1,4}not|avoid|without)\b[^.;:\n]{0,40})$"
)


def word_findings(path: str, text: str, checks: Checks) -> Iterator[LintFinding]:
    """Problems in one text of a rule."""
    looks = as_it_looks(text)
    lowered = looks.lower()
    yield from _disguises(path, text)
    if any(map(checks.reads_like_instructions, dict.fromkeys((text, looks)))):
        yield finding("injection", path)
    for code, pattern in (("role_marker", _ROLE), ("runs_remote_code", _REMOTE)):
        if (found := pattern.search(lowered)) is not None:
            yield finding(code, path, repr(found[0][:60]))
    if path in _SAID and (found := _INTERNAL.search(lowered)) is not None:
        yield finding("internal_words", path, repr(found[0][:60]))
    if (cheat := _cheat(lowered)) is not None:
        yield finding("games_the_verifier", path, repr(cheat[:80]))
    if (taken := _unless_warned(_COLLECTS, lowered) or _unless_warned(_SENDS, lowered)) is not None:
        yield finding("takes_private_data", path, repr(taken[:80]))
    if (kind := checks.find_secret(text) or checks.find_secret(looks)) is not None:
        yield finding("secret", path, kind)
    if _OPAQUE.search(looks) is not None:
        yield finding("opaque_text", path)
    yield from _links(path, lowered)
    folded = looks.casefold()
    for words in checks.forbidden:
        if as_it_looks(words).casefold() in folded:
            yield finding("forbidden_pattern", path, repr(words[:60]))


def as_it_looks(text: str) -> str:
    """The text as a reader sees it."""
    shown = "".join(char for char in normalize("NFKC", text) if ord(char) not in _HIDDEN)
    return shown.translate(_LOOKS) if not shown.isascii() and _LATIN.search(shown) else shown


def _disguises(path: str, text: str) -> Iterator[LintFinding]:
    controls = sorted({char for char in text if category(char) == "Cc" and char not in _PLAIN})
    if controls:
        yield finding("control_character", path, ", ".join(f"U+{ord(char):04X}" for char in controls[:4]))
    hidden = sorted({char for before, char in pairwise(f" {text}") if _is_hidden(before, char)})
    if hidden:
        yield finding("hidden_character", path, ", ".join(map(_character_name, hidden[:4])))
    for word in _WORD.findall(text) if not text.isascii() else ():
        if not _FOREIGN.isdisjoint(word) and _LATIN.search(word):
            yield finding("mixed_script", path, repr(word[:40]))
            return


def _is_hidden(before: str, char: str) -> bool:
    """Return whether the character hides text. Emoji, and scripts that need them, legitimately use such joiners."""
    if char in _JOINING and not before.isascii():
        return ord(before) in _HIDDEN and before + char != "\ufe0f\u200d"
    return ord(char) in _HIDDEN or category(char) in ("Co", "Cs")


def _links(path: str, lowered: str) -> Iterator[LintFinding]:
    links: list[str] = _LINK.findall(lowered)
    carrying = [link for link in links if _CARRIES.search(link)]
    mailbox = _MAILBOX.search(lowered)
    if mailbox is not None:
        yield finding("mailbox", path, repr(mailbox[0][:80]))
    elif not links and (host := _HOST.search(lowered)) is not None:
        yield finding("host", path, repr(host[0][:80]))
    if carrying or _IMAGE.search(lowered):
        yield finding("link_out", path, repr(carrying[0][:80]) if carrying else "an embedded image or frame")
    elif links:
        yield finding("link", path, repr(links[0][:80]))


def _cheat(lowered: str) -> str | None:
    """Find advice to cheat, except in a warning against it."""
    return _unless_warned(_GAMES, lowered)


def _unless_warned(pattern: re.Pattern[str], lowered: str) -> str | None:
    """The text matched by the pattern, unless it is part of a warning."""
    for found in pattern.finditer(lowered):
        if _NEGATED.search(lowered[max(0, found.start() - 60) : found.start()]) is None:
            return found[0]
    return None


def _character_name(char: str) -> str:
    """A character by its code point and its name in Unicode."""
    return f"U+{ord(char):04X} {name(char, '')}".strip()


# == lint =============================================================================================================

_PREDICATES_MAX, _TITLE_CHARS_MAX = 16, 200
_CHARS_MAX = 20_000
"""Longer texts are refused for their length and not examined further."""


def lint_rule(
    record: RuleRecord,
    policy: LintPolicy,
    count_tokens: CountTokens,
    reads_like_instructions: Callable[[str], bool],
    find_secret: Callable[[str], str | None],
) -> tuple[LintFinding, ...]:
    """All findings on a rule, in a fixed order. `FINDINGS` lists the codes."""
    checks = Checks(reads_like_instructions, find_secret, policy.forbidden)
    return (
        *_sizes(record, policy, count_tokens),
        *_words(record, checks),
        *condition_findings(record.applicability, _PREDICATES_MAX),
        *_shape(record),
    )


def is_clean(findings: tuple[LintFinding, ...]) -> bool:
    """Return whether there are no errors; warnings are allowed."""
    return all(one.severity != "error" for one in findings)


def _sizes(record: RuleRecord, policy: LintPolicy, count_tokens: CountTokens) -> Iterator[LintFinding]:
    body = record.body[:_CHARS_MAX]
    if not any(map(str.isalnum, body)):
        yield finding("body_empty", "$.body")
    tokens = count_tokens(body)
    if tokens > policy.body_tokens_max or len(record.body) > _CHARS_MAX:
        said = (
            f"{tokens} tokens{'' if len(record.body) <= _CHARS_MAX else ' and more'}, at most {policy.body_tokens_max}"
        )
        yield finding("body_too_long", "$.body", said)
    if record.title is not None and len(record.title) > _TITLE_CHARS_MAX:
        yield finding("title_too_long", "$.title", f"{len(record.title)}, at most {_TITLE_CHARS_MAX}")


def _words(record: RuleRecord, checks: Checks) -> Iterator[LintFinding]:
    where = record.applicability
    texts = [
        ("$.title", record.title),
        ("$.body", record.body),
        ("$.applicability.domain_tag", where.domain_tag),
        ("$.applicability.task_family", where.task_family),
        *((child_path(PREDICATES, place), text) for place, text in enumerate(where.predicates or ())),
    ]
    for path, text in texts:
        if text is not None:
            yield from word_findings(path, text[:_CHARS_MAX], checks)


def _shape(record: RuleRecord) -> Iterator[LintFinding]:
    if record.type == "GuardrailRule" and (record.priority is None or not record.priority.guardrail_first):
        yield finding("guardrail_not_first", "$.priority.guardrail_first")
    if not record.tests.regression_tests:
        yield finding("no_regression_test", "$.tests.regression_tests")
    if not record.tests.counterexample_tests:
        yield finding("no_counterexample_test", "$.tests.counterexample_tests")
