"""Order, filters and seeking in lists: what each engine answers is what a plain list of the same things would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from http_support import ANA, TENANT, Serve
from starlette.testclient import TestClient

import muniment
from muniment.core.outside.system import CountingIds
from muniment.core.ports.engine import Patch
from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.handles.memory import Memory

BEGUN = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """Stands still until it is moved, so that several things happen at once."""

    def __init__(self) -> None:
        self.now = BEGUN

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(any_store: Memory) -> Clock:
    """The store's own."""
    made = Clock()
    any_store._ctx.clock = made
    any_store._ctx.ids = CountingIds()
    return made


@pytest.fixture
def told(any_store: Memory, clock: Clock) -> Memory:
    """Three sessions of ana's, of several runs, with ties: nine runs, eight builds, eleven facts; bob beside her."""
    for number in range(9):
        clock.now = BEGUN + timedelta(hours=number // 3)
        run = any_store.run(
            user_id="ana", session_id=f"s{number % 3}", run_id=f"run{number}", objective=f"Tree {number}"
        )
        said = run.observe("user", f"Tree {number} stands near the RIVER.")
        run.observe("assistant", f"Noted: tree {number}.")
        if number:
            run.compose("responder", query=f"Where is tree {number}?")
            run.remember(f"tree.{number}", f"river {number}", sources=[said.id])
        if number % 4 == 0:
            run.remember("tree.last", number, sources=[said.id])
    other = any_store.run(user_id="bob", session_id="s0", run_id="run-bob")
    other.observe("user", "I am Bob.", id="evt-bob")
    other.compose("responder", query="Who am I?")
    return any_store


def walk(client: TestClient, path: str, limit: int, **asked: Any) -> Iterator[list[dict[str, Any]]]:
    cursor: dict[str, str] = {}
    while True:
        answer = client.get(path, params={"limit": limit, **asked, **cursor})
        assert answer.status_code == 200, answer.text
        yield answer.json()["items"]
        if "next" not in answer.json():
            return
        cursor = {"cursor": answer.json()["next"]}


def ids_of(items: Sequence[dict[str, Any]]) -> list[str]:
    names = ("run_id", "build_id", "fact_id", "id", "episode_id")
    key = (
        next(name for name in ("build_id", "fact_id", "episode_id", "id", "run_id") if items and name in items[0])
        if items
        else names[0]
    )
    return [each[key] for each in items]


LISTS: dict[str, Callable[[Memory], list[str]]] = {
    "runs": lambda mem: [each.run_id for each in mem.runs(user_id="ana")],
    "builds": lambda mem: build_ids(mem),
    "facts": lambda mem: [each.fact_id for each in mem.run(user_id="ana").facts(order="asc", include_all=True)],
    "events": lambda mem: [each.id for each in mem.ledger.entries(user_id="ana")],
    "episodes": lambda mem: [each.episode_id for each in mem.ledger.episodes(user_id="ana")],
}
"""By the end of its address, the ids of the whole list, oldest first."""


def build_ids(mem: Memory) -> list[str]:
    from muniment.surfaces.operations.parts import builds

    return [each.build_id for each in builds(mem, user_id="ana", order="asc")]


@pytest.mark.soak
def test_pages_in_either_order_make_the_whole(told: Memory, serve: Serve) -> None:
    client = serve(told)
    for name, whole_of in LISTS.items():
        whole = whole_of(told)
        assert len(whole) == len(set(whole)) >= 3, name
        asked = {"include_all": "true"} if name == "facts" else {}
        for limit in (1, 4, 50):
            for order, wanted in (("asc", whole), ("desc", whole[::-1])):
                pages = list(walk(client, f"{ANA}/{name}", limit, order=order, **asked))
                assert [each for page in pages for each in ids_of(page)] == wanted, (name, order, limit)


def test_what_stands_around_one_is_what_the_whole_has_there(told: Memory, serve: Serve) -> None:
    client = serve(told)
    for name in ("runs", "builds", "facts", "events"):
        whole = LISTS[name](told)
        asked = {"include_all": "true"} if name == "facts" else {}
        for at in (0, 1, len(whole) // 2, len(whole) - 1):
            for order in ("asc", "desc"):
                there = whole if order == "asc" else whole[::-1]
                place = there.index(whole[at])
                path = f"{ANA}/{name}"
                page = client.get(path, params={"limit": 5, "around": whole[at], "order": order, **asked}).json()
                start = max(0, place - 2)
                assert ids_of(page["items"]) == there[start : start + 5][: len(page["items"])]
                assert whole[at] in ids_of(page["items"])
                if "next" in page:
                    rest = client.get(
                        path, params={"cursor": page["next"], "around": whole[at], "order": order, **asked}
                    )
                    assert ids_of(rest.json()["items"]) == there[start + len(page["items"]) :]


def test_times_kinds_and_words(told: Memory) -> None:
    entries = list(told.ledger.entries(user_id="ana"))
    for since, until in (
        (BEGUN, None),
        (None, BEGUN + timedelta(hours=1)),
        (BEGUN + timedelta(hours=1), BEGUN + timedelta(hours=2)),
    ):
        first = "" if since is None else since.isoformat(timespec="microseconds")[:-6] + "Z"
        last = "9" if until is None else until.isoformat(timespec="microseconds")[:-6] + "Z"
        wanted = [each.id for each in entries if first <= each.recorded_at < last]
        assert [each.id for each in told.ledger.entries(user_id="ana", since=since, until=until)] == wanted
        turned = told.ledger.entries(user_id="ana", since=since, until=until, order="desc", limit=7)
        assert [each.id for each in turned] == wanted[::-1][:7]
        runs = [each for each in told.runs(user_id="ana") if first <= each.started_at < last]
        assert told.runs(user_id="ana", since=since, until=until) == runs
    for kind in ("message", "state_patch", "system"):
        wanted = [each.id for each in entries if each.kind == kind]
        assert [each.id for each in told.ledger.entries(user_id="ana", kind=kind)] == wanted
    wanted = [each.id for each in entries if each.kind == "message" and each.role == "user"]
    assert [each.id for each in told.ledger.entries(user_id="ana", q="near  the river", kind="message")] == wanted
    assert [each.run_id for each in told.runs(user_id="ana", q="TREE 4")] == ["run4"]
    assert [each.run_id for each in told.runs(q="tree", order="desc", limit=2)] == ["run8", "run7"]
    (fact,) = told.run(user_id="ana").facts(q="tree.5")
    assert fact.value == "river 5"
    assert [
        each.id for each in told.run(user_id="ana", run_id="run4", session_id="s1").ledger.entries(order="desc")
    ] == [each.id for each in entries[::-1] if each.scope.run_id == "run4"]


def test_a_forget_between_pages_loses_and_doubles_nothing(told: Memory, serve: Serve) -> None:
    client = serve(told)
    for order in ("asc", "desc"):
        pages = walk(client, f"{ANA}/builds", 2, order=order)
        seen = ids_of(next(pages))
        gone = told.run(user_id="ana", session_id="again", run_id=f"again-{order}")
        said = gone.observe("user", f"Said {order} and forgotten.")
        build = gone.compose("responder", query=f"What was said {order}?")
        before = build_ids(told)
        told.forget(event=said.id, user_id="ana")
        left = build_ids(told)
        assert set(before) - set(left) >= {build.id} or build.id in left
        for page in pages:
            seen += ids_of(page)
        assert len(seen) == len(set(seen))
        assert set(left) - {build.id} <= set(seen) <= set(before)
    first = LISTS["facts"](told)
    assert told.verify().ok
    told.forget(session="s1", user_id="ana")
    assert told.verify().ok
    assert set(LISTS["facts"](told)) < set(first)
    assert "run1" not in LISTS["runs"](told)


REFUSED = [
    ({"order": "sideways"}, "$.order"),
    ({"since": "rubbish"}, "$.since"),
    ({"until": "rubbish"}, "$.until"),
    ({"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"}, "$.until"),
    ({"limit": 0}, "$.limit"),
    ({"q": " "}, "$.q"),
    ({"kind": "rubbish"}, "$.kind"),
    ({"around": ""}, "$.around"),
]


@pytest.mark.parametrize(("asked", "path"), REFUSED, ids=lambda each: str(each))
def test_what_makes_no_sense_is_refused_at_every_door(asked: dict[str, Any], path: str, serve: Serve) -> None:
    with muniment.open() as mem:
        run = mem.run(user_id="ana", run_id="r1")
        run.observe("user", "Hello.")
        client = serve(mem)
        doors: list[Callable[[], Any]] = [lambda: list(mem.ledger.entries(user_id="ana", **asked))]
        doors.append(lambda: list(run.ledger.entries(**asked)))
        if "kind" not in asked:
            doors += [
                lambda: mem.runs(**asked),
                lambda: run.facts(**asked),
                lambda: list(mem.ledger.episodes(user_id="ana", **asked)),
            ]
        for door in doors:
            with pytest.raises(InvalidInput) as caught:
                door()
            assert (caught.value.path, bool(caught.value.hint)) == (path, True)
        for name in ("events", "runs/r1/events") + (() if "kind" in asked else ("runs", "facts", "episodes", "builds")):
            answer = client.get(f"{ANA}/{name}", params=asked)
            told = answer.json()
            assert (answer.status_code, told["code"], told["path"]) == (422, "invalid_input", path), name
            assert told["hint"]


def test_one_of_another_user_s_is_not_there(told: Memory, serve: Serve) -> None:
    """The same words, whether it is another's or nobody's."""
    client = serve(told)
    build = next(each for each in client.get(f"{TENANT}/builds").json()["items"] if each["user_id"] == "bob")
    theirs = {"events": "evt-bob", "runs": "run-bob", "builds": build["build_id"], "episodes": "evt-bob"}
    for name, id_ in theirs.items():
        answers = [client.get(f"{ANA}/{name}", params={"around": each}) for each in (id_, "nobody-s")]
        assert [each.status_code for each in answers] == [404, 404], name
        one, other = (each.json() for each in answers)
        assert one["path"] == other["path"] == "$.around"
        assert one["detail"].replace(id_, "nobody-s") == other["detail"]
        assert (one["hint"], one["code"]) == (other["hint"], other["code"])
    with pytest.raises(NotFound):
        told.runs(user_id="ana", around="run-bob")


def test_counts_are_counts(told: Memory, serve: Serve) -> None:
    client = serve(told)
    entries = list(told.ledger.entries(user_id="ana"))
    for path, asked, wanted in (
        (f"{ANA}/events", {}, len(entries)),
        (f"{ANA}/events", {"session_id": "s1"}, sum(each.scope.session_id == "s1" for each in entries)),
        (f"{ANA}/runs/run4/events", {}, sum(each.scope.run_id == "run4" for each in entries)),
        (f"{ANA}/runs", {}, 9),
        (f"{ANA}/runs", {"since": "2026-03-01T01:00:00Z"}, 6),
        (f"{ANA}/builds", {}, 8),
        (f"{TENANT}/builds", {}, 9),
        (f"{TENANT}/runs", {}, 10),
    ):
        page = client.get(path, params={"limit": 2, **asked}).json()
        assert page["count"] == wanted, (path, asked)
        assert "count" not in client.get(path, params={"limit": 2, "cursor": page["next"], **asked}).json()
    for name, asked in (
        ("events", {"kind": "message"}),
        ("events", {"q": "tree"}),
        ("facts", {}),
        ("runs", {"q": "tree"}),
    ):
        told_page = client.get(f"{ANA}/{name}", params=asked).json()
        assert "count" not in told_page, "what would have to be read to be counted is not"


def test_lists_that_were_tampered_with_are_named_and_put_right(told: Memory) -> None:
    engine = told._ctx.engine
    told.store.index()
    whole = LISTS["runs"](told), LISTS["episodes"](told)
    engine.write("default", lambda tx: tx.do(Patch("items", (("id", "=", "run3"),), {"newest": 0})))
    engine.write("default", lambda tx: tx.do(Patch("items", (("id", "=", "run4"),), {"owner": "bob"})))
    differing = told.verify().differing
    assert {(each.kind, each.id) for each in differing} == {("listing", "run3"), ("listing", "run4")}
    engine.write("default", lambda tx: tx.do(Patch("episodes", (("session_id", "=", "s2"),), {"last": 2})))
    assert {each.session_id for each in told.verify().broken} == {"s2"}
    told.store.rebuild()
    assert told.verify().ok
    assert (LISTS["runs"](told), LISTS["episodes"](told)) == whole


def test_a_filter_that_shows_little_goes_on_page_by_page(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.core.listing.LOOKED_MAX", 250)
    with muniment.open() as mem:
        run = mem.run(user_id="ana", session_id="s")
        run.observe_many([{"role": "user", "content": "Hay."} for _ in range(900)])
        needle = run.observe("user", "A needle.")
        pages = list(walk(serve(mem), f"{ANA}/events", 10, q="needle"))
        assert [ids_of(page) for page in pages if page] == [[needle.id]]
        assert len(pages) > 1, "no page looked at everything"


def test_errors_have_the_shape_of_all_errors() -> None:
    with muniment.open() as mem, pytest.raises(MunimentError) as caught:
        mem.runs(order="sideways")  # type: ignore[arg-type]
    assert caught.value.to_dict()["code"] == "invalid_input"
