"""What a build would have been with other settings: the bytes that composing so would give, and nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Select
from muniment.core.ports.schema import TABLES
from muniment.errors import InvalidInput, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets import builds
from muniment.packets.builds import Build
from products import for_each

QUERY = "Which place by the water does Jiwoo like best?"
SETTINGS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "budget": {"max_tokens": 320},
    "more": {"max_tokens": 4096},
    "sections": {"per_section": {"episodes": 0, "facts": 40}},
    "purpose": {"purpose": "planner"},
    "query": {"query": "What may she not eat?"},
    "all": {"purpose": "tool", "query": "dinner", "max_tokens": 512, "per_section": {"short_term_summary": 200}},
}


def _tell(mem: Memory) -> Run:
    for session in ("early", "later"):
        run = mem.run(user_id="ana", session_id=session, run_id=f"run_{session}")
        run.observe_many(
            {"role": "user", "speaker": "Ana", "content": f"In {session} Jiwoo liked place {n} by the water best."}
            for n in range(25)
        )
    run = mem.run(user_id="ana", session_id="ask", run_id="run_ask", objective="Help Ana eat well")
    said = run.observe("user", "I am vegan, and I cannot eat nuts.", speaker="Ana")
    run.remember("user.diet", "vegan", sources=[said.id])
    run.patch(goal="book dinner", slots={"people": 2})
    run.insight("hypothesis", "Jiwoo may be vegan too", sources=[said.id])
    return run


def _rows(mem: Memory) -> str:
    """All that any table holds."""
    engine = mem._ctx.engine
    return repr(
        [
            engine.read(tenant, lambda reader: [row for spec in TABLES for row in reader.do(Select(spec.name))])
            for tenant in ("default", *mem.store.tenants())
        ]
    )


def _asked(build: Build, **settings: Any) -> dict[str, Any]:
    """The call of `compose` that a preview stands for."""
    given = {"purpose": build.request.purpose, "query": build.request.query, "now": build.request.now} | settings
    window = given.pop("window_turns", None)
    return given | ({} if window is None else {"policy": {"compose": {"window_turns": window}}})


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_preview_writes_nothing_and_is_what_composing_gives(make: Any, engine: str) -> None:
    """On every engine: not a row changes, and two builds that are then made so are the preview, byte for byte."""
    any_mem: Memory = make(engine)
    run = _tell(any_mem)
    build = run.compose("responder", query=QUERY, max_tokens=600)
    before = _rows(any_mem)
    previews = {}
    tried = {name: SETTINGS[name] for name in ("nothing", "sections", "all")} | {"window": {"window_turns": 0}}
    for name, settings in tried.items():
        previews[name] = any_mem.log.preview(build.id, **settings)
        assert previews[name].basis == "then", name
    assert any_mem.log.preview(build.id, basis="now").basis == "now"
    with pytest.raises(NotFound):
        any_mem.log.preview("bld_none")
    assert _rows(any_mem) == before
    assert any_mem.verify().ok
    assert previews["nothing"].packet.to_bytes() == build.packet_bytes
    for name, settings in tried.items():
        shown = previews[name]
        for _ in range(2):  # a second one is given the numbers that the first kept
            asked = {"max_tokens": 600} | _asked(build, **settings)
            made = run.compose(asked.pop("purpose"), **asked)
            if name in ("nothing", "sections"):  # what they cite has its numbers from the build already
                assert shown.packet.to_bytes() == made.packet_bytes, name
            assert _unnumbered(shown.text, shown.marks) == _unnumbered(made.text, made.marks), name
            assert (shown.tokens, shown.found) == (made.tokens, made.found), name


def _unnumbered(text: str, marks: Any) -> str:
    for number in sorted(marks, key=int, reverse=True):
        text = text.replace(f"[{number}]", f"[{marks[number]}]")
    return text


@pytest.mark.parametrize("name", SETTINGS)
def test_a_store_that_composes_so_has_the_bytes_of_the_preview(make: Any, name: str) -> None:
    """Two stores of one story: what one previews, the other composes in its place."""
    first, second = make("memory"), make("memory")
    settings = SETTINGS[name]
    build = _tell(first).compose("responder", query=QUERY, max_tokens=600)
    shown = first.log.preview(build.id, **settings)
    asked = {"max_tokens": 600} | _asked(build, **settings)
    made = _tell(second).compose(asked.pop("purpose"), **asked)
    assert _unnumbered(shown.text, shown.marks) == _unnumbered(made.text, made.marks)
    plain, composed = shown.packet.to_wire(), made.packet.to_wire()
    for packet in (plain, composed):
        packet["explain"]["determinism"].pop("marks", None)  # the build before has given numbers already
    assert plain == composed


def test_the_file_of_a_store_keeps_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with muniment.open(path) as mem:
        build = _tell(mem).compose("responder", query=QUERY)
    held = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with muniment.open(path, read_only=True) as mem:
        assert mem.log.preview(build.id, max_tokens=256, query="nuts").diff.request == ("budget", "query")
    assert path.read_bytes() == held[path.name]


def test_what_it_was_made_from_is_said(mem: Memory) -> None:
    run = _tell(mem)
    build = run.compose("responder", query=QUERY, max_tokens=600)
    assert mem.log.preview(build.id, query="nuts").basis == "then"
    news = run.observe("user", "Jiwoo likes the place under the bridge by the water best now.", speaker="Ana")
    old = mem.log.preview(build.id, max_tokens=512)
    assert old.basis == "candidates"
    assert news.id not in old.marks.values()
    assert old.diff.a == build.id
    assert mem.log.preview(build.id).packet.to_bytes() == build.packet_bytes
    for settings in ({"query": "the bridge"}, {"window_turns": 50}, {"basis": "now"}):
        shown = mem.log.preview(build.id, **settings)
        assert shown.basis == "now"
        assert shown.request.now > build.request.now
    assert news.id in mem.log.preview(build.id, query="the bridge").marks.values()
    assert mem.log.preview(build.id, window_turns=1).basis == "candidates"


@for_each("name", [*SETTINGS, "basis"])
def test_a_preview_composes_once(make: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Before and after the store has moved on, whatever it is made from; and an answer to a build composes nothing."""
    mem: Memory = make("memory")
    run = _tell(mem)
    build = run.compose("responder", query=QUERY, max_tokens=600)
    composed: list[str] = []
    compose = builds.compose

    def counted(request: Any, *given: Any) -> Any:
        composed.append(request.query)
        return compose(request, *given)

    monkeypatch.setattr(builds, "compose", counted)
    bases = set()
    for _ in range(2):
        bases.add(mem.log.preview(build.id, **SETTINGS.get(name, {"basis": "now"})).basis)
        run.observe("user", "Jiwoo likes the place under the bridge by the water best now.", speaker="Ana")
    assert len(composed) == 2, bases
    run.observe("assistant", "The place under the bridge [1].", build=build.id)
    run.observe("assistant", "The place under the bridge [1].", build=build)
    assert len(composed) == 2


def test_limits_that_were_given_stay_and_shares_follow_the_budget(mem: Memory) -> None:
    build = _tell(mem).compose("responder", query=QUERY, max_tokens=600, per_section={"facts": 33})
    caps = mem.log.preview(build.id, max_tokens=1000, per_section={"episodes": 0}).request.budget.per_section.to_wire()
    assert (caps["facts"], caps["episodes"], caps["working_state"]) == (33, 0, 850)
    gone = mem.log.preview(build.id, per_section={"short_term_summary": 0})
    assert all(pair.b is None or pair.b.block != "quotes" for pair in gone.diff.lines)
    assert {pair.reason for pair in gone.diff.lines if pair.what == "removed" and pair.item} <= {
        "over_budget",
        "superseded",
    }


@for_each(
    ("settings", "path"),
    [
        ({"purpose": "poet"}, "$.purpose"),
        ({"max_tokens": 12}, "$.max_tokens"),
        ({"per_section": {"poems": 3}}, "$.per_section.poems"),
        ({"per_section": {"facts": -1}}, "$.per_section.facts"),
        ({"window_turns": -1}, "$.window_turns"),
        ({"basis": "soon"}, "$.basis"),
        ({"query": 3}, "$.query"),
        ({"policy": 3}, "$.policy"),
    ],
)
def test_what_cannot_be_set_is_refused(mem: Memory, settings: dict[str, Any], path: str) -> None:
    build = _tell(mem).compose("responder", query=QUERY)
    with pytest.raises(InvalidInput) as refused:
        mem.log.preview(build.id, **settings)
    assert refused.value.path == path
