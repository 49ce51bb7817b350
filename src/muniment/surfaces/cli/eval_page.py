"""An eval as a page: one HTML file with no script and no network access, light or dark as the reader's system.

The page may hold anything from a memory. Every text is escaped, invisible characters are shown as signs, and the page's
policy forbids loading or running anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from muniment.surfaces.cli.evals import difference_words, miss_words
from muniment.verify.evals.measures import MEASURES

if TYPE_CHECKING:
    from muniment.verify.evals.report import ArmSummary, Asked, BaselineDiff, EvalReport, Scored

__all__ = ["eval_page"]

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Controls, lone surrogates, and characters that change text direction."""
_MEANINGS = {
    "recall": "share of the evidence that was given",
    "told": "an expected answer stands in the text",
    "newest": "the evidence is there, and nothing outdated above it",
    "clean": "nothing stands in it that must not be told",
    "recognised": "nothing answers it, and the packet says so",
    "offered": "something answers it, and the packet does not say otherwise",
    "f1": "tokens that the model's answer shares with an expected one",
    "contains": "the model's answer holds an expected one",
    "answered": "something answers it, and the model answered",
    "declined": "nothing answers it, and the model said so",
    "cited": "the model cites a piece of the evidence",
}
assert set(_MEANINGS) == set(MEASURES)
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5f6b7a; --paper: #fff; --rule: #d9dee5; --well: #f4f6f8;
  --good: #1a7f37; --bad: #c62828; --odd: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --dim: #98a3b3; --paper: #14171c; --rule: #2e353f;
  --well: #1c2128; --good: #57c878; --bad: #ff7b72; --odd: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; } .dim { color: var(--dim); }
.good { color: var(--good); } .bad { color: var(--bad); } .odd { color: var(--odd); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--dim); font-weight: 600; }
details { border: 1px solid var(--rule); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
details details { background: var(--well); border: 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
ul { margin: .25rem 0; padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; font: 13px/1.45 ui-monospace, monospace; }
.arm { border-top: 1px solid var(--rule); margin-top: .5rem; padding-top: .5rem; }
.said { unicode-bidi: isolate; }
body:has(#missed:checked) details.passed { display: none; }
"""


def eval_page(
    report: EvalReport, problems: Iterable[str] = (), since: BaselineDiff | None = None, baseline: str = ""
) -> bytes:
    """Render the page; `problems` are the reasons the run fails."""
    return "\n".join(_page(report, list(problems), since, baseline)).encode()


def _text(text: str) -> str:
    """Escape an untrusted text."""
    shown = _UNSEEN.sub("\ufffd", text)
    return f'<span class="said" dir="auto">{escape(shown)}</span>'


def _page(report: EvalReport, problems: list[str], since: BaselineDiff | None, baseline: str) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Eval: {escape(_UNSEEN.sub(chr(0xFFFD), report.name))}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{_text(report.name)}</h1>"
    yield from _head(report, problems)
    yield from _arms(report)
    if since is not None:
        yield from _since(since, baseline)
    yield "<h2>Questions</h2>"
    yield '<p><label><input type="checkbox" id="missed"> only those that were missed or cannot be asked</label></p>'
    for each in report.asked:
        yield from _question(report, each)
    yield "</body></html>"


def _head(report: EvalReport, problems: list[str]) -> Iterator[str]:
    main = report.summaries[report.main]
    model = f", answered by {_text(report.model)}" if report.model else ""
    yield (
        f'<p class="dim">{len(report.asked)} questions{model}; tokens counted by {_text(report.counter)}. '
        f"{_text(report.main)}: {main.passed} of {main.judged} passed.</p>"
    )
    if report.broken:
        yield f'<p class="bad">{len(report.broken)} cannot be asked: memory does not hold what they name.</p>'
    yield from (f'<p class="bad">{_text(each)}</p>' for each in problems)


def _arms(report: EvalReport) -> Iterator[str]:
    measures = report.measures()
    heads = "".join(f'<th title="{escape(_MEANINGS[name])}">{name}</th>' for name in measures)
    yield '<h2>Arms</h2><div class="wide"><table>'
    yield f"<tr><th>arm</th><th>passed</th>{heads}<th>tokens</th><th>ms</th></tr>"
    for summary in report.summaries.values():
        yield _arm_row(summary, measures)
    yield "</table></div>"
    yield '<details><summary class="dim">what is measured</summary><ul>'
    yield from (f"<li><b>{name}</b>: {escape(_MEANINGS[name])}</li>" for name in measures)
    yield "</ul></details>"
    sure = [each for each in report.differences if each.is_sure]
    if sure:
        yield '<p class="dim">Surely different (95 % of a paired bootstrap):</p><ul>'
        yield from (f"<li>{_text(difference_words(each, report.main))}</li>" for each in sure)
        yield "</ul>"


def _arm_row(summary: ArmSummary, measures: Iterable[str]) -> str:
    cells = "".join(
        f'<td title="{mean.questions} questions">{mean.mean:.3f}</td>' if mean else "<td>·</td>"
        for mean in (summary.means.get(name) for name in measures)
    )
    kind = "good" if summary.passed == summary.judged else "odd"
    passed = f'<td class="{kind}">{summary.passed}/{summary.judged}</td>' if summary.judged else "<td>·</td>"
    return (
        f"<tr><td>{_text(summary.arm.name)}</td>{passed}{cells}"
        f"<td>{summary.tokens_mean:.0f}</td><td>{summary.median_ms:.1f}</td></tr>"
    )


def _since(since: BaselineDiff, name: str) -> Iterator[str]:
    yield f"<h2>Since {_text(name)}</h2>"
    yield (
        f'<p class="dim">{since.same} questions are the same, {len(since.added)} new, {len(since.changed)} changed, '
        f"{len(since.gone)} gone.</p><ul>"
    )
    for moved in since.moved:
        kind = "bad" if moved.is_worse else "good" if moved.after > moved.before else "odd"
        said = f"{moved.measure} of {moved.arm}: {moved.before:.3f} → {moved.after:.3f}"
        yield f'<li class="{kind}">{_text(said)}</li>'
    for flip in since.flips:
        word = "passes, and did not" if flip.passed else "passed, and does not"
        kind = "good" if flip.passed else "bad"
        yield f'<li><span class="{kind}">{word}</span> with {_text(flip.arm)}: {_text(flip.question)}</li>'
    if not since.moved and not since.flips:
        yield "<li>nothing is otherwise</li>"
    yield "</ul>"


# -- questions ----------------------------------------------------------------------------------------

_SIGNS = {True: ("good", "✓"), False: ("bad", "✗"), None: ("dim", "·")}
_EXPECTED = {
    "answers": "an answer",
    "evidence": "evidence",
    "stale": "outdated",
    "not_told": "must not be told",
}


def _question(report: EvalReport, each: Asked) -> Iterator[str]:
    row = each.by_arm.get(report.main)
    passed = row.passed if row is not None else False
    kind, sign = ("bad", "!") if each.broken else _SIGNS[passed]
    is_missed = bool(each.broken) or passed is False
    yield f'<details class="{"missed" if is_missed else "passed"}"{" open" if is_missed else ""}>'
    yield (
        f'<summary><span class="{kind}">{sign}</span> {_text(each.question.question)} '
        f'<span class="dim">{_text(each.user_id)}, {escape(each.asked_at[:10])}, '
        f"{_text(each.question.name)}</span></summary>"
    )
    yield from _expected(each)
    yield from (f'<p class="bad">{_text(said)}</p>' for said in each.broken)
    for name, scored in each.by_arm.items():
        yield from _given(name, scored)
    yield "</details>"


def _expected(each: Asked) -> Iterator[str]:
    question = each.question
    yield "<ul>"
    if not question.answerable:
        yield "<li>expected: memory holds no answer</li>"
    for field, words in _EXPECTED.items():
        for said in getattr(question, field):
            text = f' <span class="dim">{_text(each.texts[said])}</span>' if said in each.texts else ""
            yield f'<li><span class="dim">{words}:</span> {_text(said)}{text}</li>'
    if question.note:
        yield f'<li class="dim">{_text(question.note)}</li>'
    yield "</ul>"


def _given(name: str, scored: Scored) -> Iterator[str]:
    kind, sign = _SIGNS[scored.passed]
    figures = ", ".join(f"{measure} {value:.2g}" for measure, value in scored.measures.items())
    given = scored.given
    yield f'<div class="arm"><span class="{kind}">{sign}</span> <b>{_text(name)}</b> '
    yield f'<span class="dim">{escape(figures)}{", " if figures else ""}{given.tokens} tokens</span>'
    if scored.misses:
        yield "<ul>"
        yield from (f'<li class="bad">{_text(miss_words(miss))}</li>' for miss in scored.misses)
        yield "</ul>"
    if given.answer is not None:
        yield f'<p><span class="dim">answered:</span> {_text(given.answer)}</p>'
    text = _text(given.text or "nothing")
    yield f'<details><summary class="dim">what it gave</summary><pre>{text}</pre></details></div>'
