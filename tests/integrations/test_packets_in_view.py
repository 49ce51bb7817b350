"""Packets stay where they were sent, in wrapped clients: what providers bill, and what may never stay."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import muniment
from muniment.core.outside.token_counters import load_token_counter
from muniment.packets.billing import bill, prompts_of, rules
from muniment.packets.page import PAGE_SIGN
from muniment.packets.render import DIVIDER

KNOWN = (
    "I am allergic to sesame and carry an EpiPen.",
    "I live in Lisbon, near the river.",
    "My cats are called Tom and Ira.",
    "My sister Ines studies law in Porto.",
    "I work as a nurse on night shifts.",
    "My bike is a red Brompton.",
)
QUESTIONS = (
    "Where could we eat tonight?", "What are my cats called?", "Shorten this, please.", "What does my sister study?",
    "Write a title for it.", "Which bike do I have?", "And in German?", "When do I work, days or nights?",
    "Make a table of it.", "In which city do I live?",
)  # fmt: skip
REPLY = (
    "Here is a version of it. I kept the order of the points, made the sentences shorter and left out what was there "
    "twice. The second paragraph now begins with the result, and the example comes after it. "
)


class Api:
    """A client of a model, as a stub: OpenAI's shape or Anthropic's, sync, async or streaming."""

    def __init__(self, shape: str, *, is_async: bool = False) -> None:
        self.shape = shape
        self.asked: list[dict[str, Any]] = []
        create = self._create_async if is_async else self._create
        place = SimpleNamespace(create=create)
        if shape == "openai":
            self.chat = SimpleNamespace(completions=place)
        else:
            self.messages = place

    def _create(self, **given: Any) -> Any:
        self.asked.append(given)
        text = f"{len(self.asked)}: {REPLY * 3}"
        if given.get("stream"):
            return self._events(text)
        if self.shape == "openai":
            return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))])
        return SimpleNamespace(content=[SimpleNamespace(type="text", text=text)])

    async def _create_async(self, **given: Any) -> Any:
        return self._create(**given)

    def _events(self, text: str) -> Iterator[Any]:
        if self.shape == "openai":
            for part, end in ((text, None), ("", "stop")):
                delta = SimpleNamespace(content=part)
                yield SimpleNamespace(choices=[SimpleNamespace(index=0, delta=delta, finish_reason=end)])
            return
        yield SimpleNamespace(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield SimpleNamespace(type="content_block_delta", index=0, delta=SimpleNamespace(text=text))
        yield SimpleNamespace(type="content_block_stop", index=0)
        yield SimpleNamespace(type="message_stop")

    def said(self) -> str:
        return f"{len(self.asked)}: {REPLY * 3}"

    def sent(self) -> list[str]:
        """The texts of the latest request, in order."""
        return [str(each["content"]) for each in self.asked[-1]["messages"]]

    def packets(self) -> str:
        return "\n".join(text.partition(DIVIDER)[0] for text in self.sent() if DIVIDER in text)


class Chat:
    """A caller that keeps its own list, without our packets."""

    def __init__(self, api: Api, mem: muniment.Memory, **more: Any) -> None:
        self.api, self.mem, self.more = api, mem, more
        self.list: list[dict[str, Any]] = []
        self.client = self.wrapped()

    def wrapped(self) -> Any:
        return muniment.wrap(self.api, self.mem, user_id="ana", session_id="live", **self.more)

    def ask(self, text: str, *, stream: bool = False) -> None:
        self.list.append({"role": "user", "content": text})
        given: dict[str, Any] = {"model": "m", "messages": self.list}
        if stream:
            given["stream"] = True
        place = self.client.chat.completions if self.api.shape == "openai" else self.client.messages
        answer = place.create(**given)
        if asyncio.iscoroutine(answer):
            answer = asyncio.run(answer)
        if stream:
            assert list(answer)
        self.list.append({"role": "assistant", "content": self.api.said()})


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as store:
        run = store.run(user_id="ana", session_id="before")
        run.observe_many([{"role": "user", "content": text} for text in KNOWN])
        yield store


SHAPES = pytest.mark.parametrize("shape", ["openai", "anthropic"])


@SHAPES
@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_forty_turns_repeat_their_prefix_and_cost_little_more(mem: muniment.Memory, shape: str, way: str) -> None:
    api = Api(shape, is_async=way == "async")
    chat = Chat(api, mem)
    for turn in range(40):
        chat.ask(f"{QUESTIONS[turn % len(QUESTIONS)]} ({turn})", stream=way == "stream")
    assert all(fact in api.packets() for fact in KNOWN)
    assert [text.rpartition(DIVIDER)[2] for text in api.sent()] == [each["content"] for each in chat.list[:-1]]
    count = load_token_counter().count
    requests = [[str(each["content"]) for each in asked["messages"]] for asked in api.asked]
    prompts = prompts_of(requests, count)
    assert statistics.median(each.repeated / each.tokens for each in prompts[9:]) >= 0.9
    bare = [[text.rpartition(DIVIDER)[2] for text in request] for request in requests]
    for rule in rules():
        assert bill(rule, prompts).price <= 1.3 * bill(rule, prompts_of(bare, count)).price, rule.name


@SHAPES
def test_another_process_puts_the_packets_back(mem: muniment.Memory, shape: str) -> None:
    """Each call with a client of its own, as after a restart, sends what one client would have sent."""
    chat = Chat(Api(shape), mem)
    before: list[str] = []
    for turn, text in enumerate(QUESTIONS):
        chat.client = chat.wrapped()
        chat.ask(text)
        sent = chat.api.sent()
        assert sent[: len(before)] == before, turn
        before = sent
    assert before[0].startswith(PAGE_SIGN)


@SHAPES
def test_two_clients_take_turns(mem: muniment.Memory, shape: str) -> None:
    chat = Chat(Api(shape), mem)
    clients = (chat.client, chat.wrapped(), chat.wrapped())
    before: list[str] = []
    for turn, text in enumerate(QUESTIONS):
        chat.client = clients[turn * 2 % 3]
        chat.ask(text)
        assert chat.api.sent()[: len(before)] == before, turn
        before = chat.api.sent()


@SHAPES
@pytest.mark.parametrize("is_new", [False, True], ids=["same client", "restarted"])
def test_what_was_forgotten_is_gone_from_the_next_request(mem: muniment.Memory, shape: str, is_new: bool) -> None:
    chat = Chat(Api(shape), mem)
    for text in QUESTIONS[:6]:
        chat.ask(text)
    assert "Tom and Ira" in chat.api.packets()
    (hit,) = mem.run(user_id="ana", session_id="live").search("My cats are called", k=1)
    assert "Tom" in hit.text
    mem.forget(event=hit.id, user_id="ana")
    if is_new:
        chat.client = chat.wrapped()
    chat.ask("Which allergy do I have?")
    assert "Tom" not in "\n".join(chat.api.sent())
    assert "EpiPen" in chat.api.packets()
    kept = chat.api.sent()
    chat.ask("Thanks!")
    assert chat.api.sent()[: len(kept)] == kept, "and the prefix holds again"
    assert mem.verify().ok


@SHAPES
def test_a_list_that_was_cut_or_edited_starts_anew(mem: muniment.Memory, shape: str) -> None:
    chat = Chat(Api(shape), mem)
    for text in QUESTIONS[:5]:
        chat.ask(text)
    chat.list = chat.list[4:]
    chat.ask("Which allergy do I have?")
    *earlier, last = chat.api.sent()
    assert DIVIDER not in "".join(earlier), "what was behind the cut is not put back"
    assert "EpiPen" in last
    chat.ask("Thanks!")
    assert chat.api.sent()[:-2] == [*earlier, last]
    chat.list[2] = {"role": "user", "content": "Something else."}
    chat.ask("Which allergy do I have, again?")
    assert "EpiPen" in chat.api.sent()[-1]
    assert chat.api.packets().count("EpiPen") == 1


@SHAPES
def test_an_edit_keeps_what_stands_before_it(mem: muniment.Memory, shape: str) -> None:
    chat = Chat(Api(shape), mem)
    for text in QUESTIONS[:4]:
        chat.ask(text)
    first = chat.api.sent()[0]
    chat.list = [*chat.list[:4], {"role": "user", "content": "No, wait."}, *chat.list[5:]]
    chat.ask("What are my cats called?")
    assert chat.api.sent()[0] == first
    assert chat.api.packets().count("Tom and Ira") == 1


@SHAPES
def test_a_question_keeps_its_packet_while_tools_are_asked(mem: muniment.Memory, shape: str) -> None:
    chat = Chat(Api(shape), mem)
    chat.ask("Hello!")
    chat.list.append({"role": "user", "content": "How warm is it where I live?"})
    if shape == "openai":
        call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        step = [{"role": "assistant", "content": None, "tool_calls": [call]}]
        step.append({"role": "tool", "tool_call_id": "c1", "content": "12 °C"})
    else:
        use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
        step = [{"role": "assistant", "content": [use]}]
        step.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "12 °C"}]})
    place = chat.client.chat.completions if shape == "openai" else chat.client.messages
    place.create(model="m", messages=chat.list)
    before = chat.api.asked[-1]["messages"]
    place.create(model="m", messages=[*chat.list, *step])
    assert chat.api.asked[-1]["messages"] == [*before, *step]


def test_an_answer_cites_what_an_earlier_packet_showed(mem: muniment.Memory) -> None:
    chat = Chat(Api("openai"), mem)
    chat.ask("Which allergy do I have?")
    line = next(line for line in chat.api.packets().splitlines() if "EpiPen" in line)
    for text in QUESTIONS[:3]:
        chat.ask(text)
    resolved = chat.client.last_build.resolve(f"Sesame {line.partition(' ')[0]}.")
    (id_,) = resolved.evidence_ids
    assert "EpiPen" in mem.ledger.content(id_)


def test_behind_the_system_prompt_nothing_stays(mem: muniment.Memory) -> None:
    chat = Chat(Api("openai"), mem, place="system")
    for text in QUESTIONS[:3]:
        chat.ask(text)
    system, *others = chat.api.sent()
    assert "EpiPen" in system
    assert DIVIDER not in "".join(others)


# -- the bill, and what was in view ---------------------------------------------------------------------------


@SHAPES
def test_a_recorded_conversation_is_billed_as_it_was_sent(mem: muniment.Memory, shape: str) -> None:
    chat = Chat(Api(shape), mem)
    for turn in range(24):
        chat.ask(f"{QUESTIONS[turn % len(QUESTIONS)]} ({turn})")
    made = mem.log.bill(chat.client.run.run_id)
    count = load_token_counter().count
    requests = [_split(asked) for asked in chat.api.asked]
    prompts = prompts_of(requests, count)
    bare = prompts_of([[text for text in request if PAGE_SIGN not in text] for request in requests], count)
    assert made.requests == 24
    assert made.tokens_without_memory == sum(each.tokens for each in bare)
    assert abs(made.tokens - sum(each.tokens for each in prompts)) <= 6 * 24, "but for the line behind each packet"
    for rule, each in zip(rules(), made.rules, strict=True):
        assert each.rule == rule.name
        assert each.without_memory.price == bill(rule, bare).price
        assert 0.8 < each.ratio < 1.6
        side = each.with_memory
        assert side.fresh + side.cached + side.written == made.tokens


def _split(asked: dict[str, Any]) -> list[str]:
    texts: list[str] = []
    for each in asked["messages"]:
        packet, divider, words = str(each["content"]).partition(DIVIDER)
        texts += [packet, words] if divider else [packet]
    return texts


def test_a_bill_with_packets_behind_the_prompt_and_after_a_forget(mem: muniment.Memory) -> None:
    dear, cheap = Chat(Api("openai"), mem, place="system"), Chat(Api("openai"), mem)
    dear.client, cheap.client = dear.client.for_session("dear"), cheap.client.for_session("cheap")
    for chat in (dear, cheap):
        for turn in range(12):
            chat.ask(f"{QUESTIONS[turn % len(QUESTIONS)]} ({turn})")
    bills = [mem.log.bill(chat.client.run.run_id) for chat in (dear, cheap)]
    for one, other in zip(bills[0].rules, bills[1].rules, strict=True):
        assert one.without_memory == other.without_memory
    hit = next(hit for hit in cheap.client.run.search("My cats are called Tom and Ira", k=9) if "Tom" in hit.text)
    mem.forget(event=hit.id, user_id="ana")
    later = mem.log.bill(cheap.client.run.run_id)
    assert later.forgotten_packets > 0
    assert later.tokens < bills[1].tokens


def test_which_statements_were_in_view_since_when_and_from_which_build(mem: muniment.Memory) -> None:
    chat = Chat(Api("openai"), mem, max_tokens=256)
    builds = []
    for text in QUESTIONS:
        chat.ask(text)
        builds.append(chat.client.last_build)
        lines = mem.log.in_view(builds[-1].id)
        assert {each.build_id for each in lines} <= {build.id for build in builds}
        assert [each.since for each in lines] == sorted(each.since for each in lines)
        assert all(each.line in chat.api.packets() for each in lines)
        shown = {line for line in chat.api.packets().splitlines() if line.startswith("[")}
        assert {each.line for each in lines} >= shown
    with pytest.raises(muniment.errors.NotFound):
        mem.log.in_view("bld_nothing")


def test_the_command_prints_the_bill(mem: muniment.Memory, tmp_path: Any) -> None:
    from click.testing import CliRunner

    from muniment.surfaces.cli.main import cli

    path = tmp_path / "bill.db"
    with muniment.open(path) as store:
        chat = Chat(Api("openai"), store)
        for text in QUESTIONS:
            chat.ask(text)
        run_id, build_id = chat.client.run.run_id, chat.client.last_build.id
    shown = CliRunner().invoke(cli, ["bill", run_id, "--db", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "10 requests in the session live" in shown.output
    assert all(rule.name in shown.output for rule in rules())
    shown = CliRunner().invoke(cli, ["packet", "in-view", build_id, "--db", str(path)])
    assert shown.exit_code == 0, shown.output
