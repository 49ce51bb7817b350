"""The runner's modes: each attempt a run with a log of its own, the answer the one that stands."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from muniment.contracts.learning import ReuseStateRecord
from muniment.contracts.schemas import validate
from muniment.errors import InvalidInput, InvalidRecord
from muniment.handles.memory import Memory
from muniment.handles.runner import Done
from muniment.rules._attempts import AgentTask
from muniment.rules._records import RouteDecision, RouteRequest
from muniment.rules.tree_search import TreeProblem
from muniment.verify.outputs import Output

INTENT = {"domain_tag": "math", "task_family": "countdown", "required_tools": ["calc", "search", "note"]}
UNKNOWN = {"verifier_id": "v", "verdict": "PASS", "outcome": "UNKNOWN"}
FAILED = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL"}
BROKEN = FAILED | {"violated_constraints": ["FORMAT:JSON_ONLY"]}


def numbered(task: AgentTask) -> dict[str, Any]:
    usage = {"tokens_in": 60, "tokens_out": 40}
    return {"text": f"Because it divides.\nAnswer: {task.attempt}", "usage": usage}


def passes(*words: Any) -> Callable[[Output, str], Any]:
    """A verifier that says these, one after the other, and the last from then on."""
    left = list(words)
    return lambda _output, _task: left.pop(0) if len(left) > 1 else left[0]


def logs(done: Done) -> list[dict[str, Any]]:
    told = [each.learned.event_log.to_wire() for each in done.attempts]
    for log in told:
        assert validate("EventLog", log) == []
    return told


@pytest.mark.req("RC-20", "RC-27")
def test_every_attempt_is_a_run_with_a_log_of_its_own(mem: Memory) -> None:
    done = mem.runner(numbered, passes(FAILED, UNKNOWN, FAILED), user_id="ana").run("Go.", "kroll", intent=INTENT)
    told = logs(done)
    assert len(told) == len({each.run_id for each in done.attempts}) == 6
    assert {log["run"]["mode"] for log in told} == {"kroll"}
    assert len({log["run"]["cfg"]["seed"] for log in told}) == 6
    assert {log["experiment"]["population_id"] for log in told} == {told[0]["trace_id"]}
    assert [log["run"]["attempt"] for log in told] == [1, 2, 2, 3, 4, 5]  # one and those that failed before it
    assert [log["outputs"]["rollout_summary"]["answer"] for log in told] == list("012345")
    assert all(log["outputs"]["rollout_summary"]["trace_id"] == log["trace_id"] for log in told)
    assert all(log["rollout_select"]["rollouts_n"] == 6 for log in told)
    assert all(log["cost"]["tokens_in"] == 60 for log in told)
    assert "sot_profile" not in told[0]
    assert "tree_search" not in told[0]
    assert "synth_inputs" not in told[0]["outputs"]
    assert (done.run_id, done.output.text) == (done.attempts[1].run_id, done.attempts[1].output.text)
    assert all(state.finished_at is not None for state in mem.runs(user_id="ana"))
    assert done.spent.tokens == 600


def test_a_single_attempt_leaves_no_group(mem: Memory) -> None:
    done = mem.runner(numbered, passes(True), user_id="ana").run("Go.")
    (log,) = logs(done)
    assert log["run"] == {"mode": "main"}
    assert not {"experiment", "rollout_select"} & log.keys()
    assert log["outputs"].keys() == {"y_ref"}
    assert [step.code for step in done.steps] == ["main", "confirmed"]


@pytest.mark.req("RC-20", "RC-27")
def test_synthesis_reads_summaries_alone_and_is_judged(mem: Memory) -> None:
    handed: list[AgentTask] = []

    def agent(task: AgentTask) -> str:
        handed.append(task)
        if task.mode == "synth":
            return "Answer: 24"
        return f"<think>secret plan {task.attempt}</think>Because of x.\nAnswer: {task.attempt}"

    verdicts = passes(UNKNOWN, UNKNOWN, UNKNOWN, FAILED, FAILED, FAILED, True)
    done = mem.runner(agent, verdicts, user_id="ana").run("Go.", "synth", intent=INTENT)
    assert done.passed
    assert done.output.text == "Answer: 24"
    last = done.attempts[-1]
    assert (last.kind, last.mode, last.run_id) == ("synth", "synth", done.run_id)
    told = logs(done)[-1]
    chosen = told["rollout_select"]["selected_summary_ids"]
    assert told["outputs"]["synth_inputs"]["used_summary_ids"] == chosen
    assert len(chosen) == 3
    assert told["experiment"]["parent_ids"] == told["outputs"]["synth_inputs"]["used_trace_ids"]
    synth = handed[-1]
    assert [each.summary_id for each in synth.summaries] == chosen
    assert "secret plan" not in synth.prompt
    assert "Answer: 0" in synth.prompt


@pytest.mark.req("RC-20")
def test_a_synthesis_that_is_worse_does_not_stand(mem: Memory) -> None:
    words = [UNKNOWN, FAILED, UNKNOWN, FAILED, UNKNOWN, FAILED, FAILED]
    done = mem.runner(numbered, passes(*words), user_id="ana").run("Go.", "synth")
    assert done.attempts[-1].kind == "synth"
    assert done.result.verdict == "PASS"
    assert done.run_id != done.attempts[-1].run_id


@pytest.mark.req("RC-20", "RC-27")
def test_contrasting_attempts_are_told_their_ways_and_refine(mem: Memory) -> None:
    prompts: list[str] = []
    lock = threading.Lock()

    def agent(task: AgentTask) -> dict[str, Any]:
        with lock:
            prompts.append(task.prompt)
        return {"text": f"Answer: {task.attempt}", "usage": {"tokens_out": 5}}

    runner = mem.runner(agent, passes(FAILED), user_id="ana")
    done = runner.run("Go.", "matts", intent=INTENT, seed="s")
    told = logs(done)
    configs = [log["run"]["cfg"] for log in told]
    assert len({each["plan_style"] for each in configs}) == 3
    assert all(sorted(each["tool_order"].split(">")) == sorted(INTENT["required_tools"]) for each in configs)
    assert all(any(each["seed_prompt"] in prompt for prompt in prompts) for each in configs)
    refined = sum(each["self_refine_steps"] for each in configs)
    assert 0 < refined < 3
    assert sum("Your answer so far" in prompt for prompt in prompts) == refined
    assert sum(log["cost"]["tokens_out"] for log in told) == 5 * (3 + refined)
    again = runner.run("Go.", "matts", intent=INTENT, seed="s")
    assert [each.cfg for each in again.attempts] == [each.cfg for each in done.attempts]
    other = runner.run("Go.", "matts", intent=INTENT)
    assert [each.cfg for each in other.attempts] != [each.cfg for each in done.attempts]


@pytest.mark.req("RC-20", "RC-27")
def test_a_talk_is_asked_for_and_its_signals_logged(mem: Memory) -> None:
    def agent(task: AgentTask) -> str:
        assert "Challenger:" in task.prompt
        return "Solver: 7\nChallenger: is that not wrong?\nSolver: 24\nMediator: agreed\nAnswer: 24"

    done = mem.runner(agent, lambda output, _task: output.text == "24", user_id="ana").run("Go.", "sot")
    assert done.passed
    (log,) = logs(done)
    assert log["run"]["mode"] == "sot"
    assert (log["sot_profile"], log["sot_max_turns"]) == ("sot_mini_v1", 3)
    signals = log["outputs"]["sot_signals"]
    assert (signals["qa"], signals["conflict"], signals["reconcile"]) == (1, 1, 1)
    assert "Challenger" not in " ".join(entry.content or "" for entry in mem.ledger.entries(user_id="ana"))


@pytest.mark.req("RC-20")
def test_a_broken_form_is_mended_before_more_is_tried(mem: Memory) -> None:
    prompts: list[str] = []

    def agent(task: AgentTask) -> str:
        prompts.append(task.prompt)
        return "24" if task.attempt == 0 else '{"is": 24}'

    done = mem.runner(agent, passes(BROKEN, True), user_id="ana").run("Go.", "auto")
    assert [(each.kind, each.mode) for each in done.attempts] == [("attempt", "main"), ("repair", "main")]
    assert "FORMAT:JSON_ONLY" in prompts[1]
    assert "24" in prompts[1]
    assert done.output.text == '{"is": 24}'
    told = logs(done)[1]
    assert told["experiment"]["mutation_ops"] == ["repair"]
    assert told["experiment"]["parent_ids"] == [logs(done)[0]["trace_id"]]


@pytest.mark.req("RC-20")
def test_a_dead_zone_escalates_and_an_easy_bucket_is_tried_once(mem: Memory) -> None:
    runner = mem.runner(numbered, passes(FAILED), user_id="ana")
    dead = runner.run("Go.", "auto")
    assert dead.escalate
    assert len(dead.attempts) == 6
    assert "decompose" in dead.steps[-1].words
    known = runner.run("Go.", "auto", known=(0, 20))
    assert (len(known.attempts), known.escalate) == (1, True)
    easy = runner.run("Go.", "auto", known=(40, 40))
    assert (len(easy.attempts), easy.escalate) == (1, False)


@pytest.mark.req("RC-20")
def test_caps_hold(mem: Memory) -> None:
    runner = mem.runner(numbered, passes(UNKNOWN), user_id="ana")
    assert len(runner.run("Go.", "synth", caps={"tokens_max": 450}).attempts) == 4
    assert len(runner.run("Go.", "synth", caps={"attempts_max": 2}).attempts) == 2
    high = runner.run("Go.", "synth", caps={"tokens_max": 50}, bucket_key="I3|math|clarity_high")
    assert len(high.attempts) == 3
    silent = mem.runner(lambda task: "word " * 100, passes(UNKNOWN), user_id="ana")  # what it does not say is counted
    assert len(silent.run("Go.", "kroll", caps={"tokens_max": 300}).attempts) < 4


@pytest.mark.req("RC-26")
def test_a_router_says_how_far_to_go(mem: Memory) -> None:
    asked: list[RouteRequest] = []

    def router(request: RouteRequest) -> RouteDecision:
        asked.append(request)
        return mem.learning.route(request, user_id="ana")

    runner = mem.runner(numbered, passes(FAILED, FAILED, True), user_id="ana", router=router)
    done = runner.run("Go.", bucket_key="I3|math|clarity_high", caps={"attempts_max": 9})
    assert asked[0].impact == "high"
    assert done.decision is not None
    assert done.decision.rungs
    assert done.passed
    told = logs(done)
    tiers = [log["memory_recall"]["state_key"].rpartition("tier=")[2] for log in told]
    assert set(tiers) <= {"hot", "probe", "full"}
    assert all(0 <= log["policy_signals"]["risk_score"] <= 1 for log in told)
    plain = runner.run("Go.", "main", bucket_key="I3|math|clarity_high")
    assert (plain.decision, len(asked)) == (None, 1)
    own = mem.runner(numbered, passes(True), user_id="ana", router=True).run("Go.")
    assert own.decision is not None
    with pytest.raises(InvalidInput):
        mem.runner(numbered, passes(True), user_id="ana", router=lambda _request: "full").run("Go.")


@pytest.mark.req("RC-20")
def test_where_a_router_would_try_nothing_the_task_is_tried_once(mem: Memory) -> None:
    def router(request: RouteRequest) -> RouteDecision:
        return RouteDecision.from_wire(
            {
                "action": "escalate",
                "scale": False,
                "zone": "deadzone",
                "impact": request.impact,
                "pass_rate": 0,
                "reasons": [{"code": "deadzone", "words": "decompose it"}],
            }
        )

    done = mem.runner(numbered, passes(FAILED), user_id="ana", router=router).run("Go.")
    assert len(done.attempts) == 1
    assert done.escalate
    assert done.steps[-1].code == "deadzone"


@pytest.mark.req("RC-22", "RC-27")
def test_a_tree_is_searched_in_place_of_an_attempt(mem: Memory) -> None:
    def problem(task: AgentTask) -> TreeProblem:
        return TreeProblem(root=0, expand=lambda n: [n + 1, n + 2], verify=lambda n: n == len(task.task))

    runner = mem.runner(numbered, lambda output, _task: output.text == "3", user_id="ana")
    done = runner.run("Go.", "tree", tree=problem)
    assert done.passed
    (log,) = logs(done)
    assert log["run"]["mode"] == "tree"
    assert log["tree_search"]["enabled"] is True
    assert log["tree_search"]["node_expanded"] > 0
    nothing = TreeProblem(root=0, expand=lambda n: [], verify=lambda n: False)
    lost = runner.run("Go.", "tree", tree=nothing)
    assert not lost.passed
    assert lost.result.reason_codes == ("proof_not_found",)
    for wrong in (lambda _task: 7, lambda _task: 1 / 0):
        assert runner.run("Go.", "tree", tree=wrong).result.reason_codes == ("tool_failure",)


@pytest.mark.req("RC-17")
def test_what_an_agent_claims_of_tools_is_held_against_what_was_seen(mem: Memory) -> None:
    def liar(task: AgentTask) -> dict[str, Any]:
        task.run.observe_tool("calc", args={"x": 1}, content="24")
        return {"text": "24", "tool_calls": [{"name": "calc"}, {"name": "search"}, {"name": "search"}]}

    seen: list[Output] = []

    def verifier(output: Output, _task: str) -> bool:
        seen.append(output)
        return True

    done = mem.runner(liar, verifier, user_id="ana").run("Go.", intent=INTENT)
    assert [(call.name, call.ok) for call in seen[0].tool_calls or ()] == [("calc", True)]
    (log,) = logs(done)
    assert "tool-claim-unseen" in log["flow_tags"]
    told = {"text": "24", "tool_calls": [{"name": "search"}]}
    done = mem.runner(lambda _task: told, verifier, user_id="ana").run("Go.")
    assert seen[1].tool_calls is not None  # nobody watched: its word stands
    assert [call.name for call in seen[1].tool_calls] == ["search"]
    done = mem.runner(lambda _task: told, verifier, {"watched": True}, user_id="ana").run("Go.")
    assert seen[2].tool_calls == ()
    assert "tool-claim-unseen" in logs(done)[0]["flow_tags"]


def _hangs(stop: threading.Event) -> Callable[[AgentTask], str]:
    def agent(task: AgentTask) -> str:
        while not stop.wait(0.001):
            task.run.observe_tool("clock", content="tick")  # and writes on and on
        return "late"

    return agent


@pytest.mark.req("RC-20")
def test_an_agent_that_hangs_is_an_outcome(mem: Memory) -> None:
    stop = threading.Event()
    try:
        done = mem.runner(_hangs(stop), passes(True), {"timeout_s": 0.2}, user_id="ana").run("Go.")
    finally:
        stop.set()
    assert not done.passed
    assert done.result.reason_codes == ("tool_timeout",)
    assert mem.runs(user_id="ana")[0].finished_at is not None
    assert mem.verify().ok


@pytest.mark.soak
def test_a_verifier_that_hangs_decides_nothing(mem: Memory) -> None:
    stop = threading.Event()
    try:
        runner = mem.runner(numbered, lambda *_: stop.wait(60), {"timeout_s": 0.2}, user_id="ana")
        done = runner.run("Go.")
    finally:
        stop.set()
    assert (done.result.outcome, done.result.reason_codes) == ("UNKNOWN", ("exec_unavailable",))


@pytest.mark.soak
@pytest.mark.parametrize(
    "answer",
    [
        "x" * 5_000_000,
        Output(text="x" * 5_000_000),
        {"text": "x", "tool_calls": [{"name": "t", "args": {"a": "x" * 5_000_000}}]},
        {"text": "x", "summary": {"answer": "x" * 5_000_000}},
        "\ud800",
    ],
    ids=["text", "output", "calls", "summary", "surrogate"],
)
def test_an_answer_that_cannot_be_kept_is_an_outcome(mem: Memory, answer: Any) -> None:
    done = mem.runner(lambda _task: answer, passes(True), user_id="ana").run("Go.", "kroll", k=2)
    assert {each.result.reason_codes for each in done.attempts} == {("tool_output_invalid",)}
    assert [log["experiment"]["exec_ok"] for log in logs(done)] == [False, False]
    assert all(len(entry.content or "") < 100_000 for entry in mem.ledger.entries(user_id="ana"))


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        ({"text": "x", "summary": 7}, "$.answer.summary"),
        ({"text": "x", "tols": ["a"]}, "$.answer.tols"),
        ({"text": "x", "usage": {"tokens": 3}}, "$.answer.usage.tokens"),
        ({"text": "x", "tool_calls": [{"args": {}}]}, "$.answer.tool_calls[0].name"),
        ({"text": "x", "features": {"way": ["by", "name"]}}, "$.answer.features.way"),
        ({"answer": "x"}, "$.answer.answer"),
        ({"text": 7}, "$.answer.text"),
        (7, "$.answer"),
        (None, "$.answer"),
        (object(), "$.answer"),
    ],
    ids=["summary", "key", "usage", "calls", "feature", "no text", "not text", "number", "none", "object"],
)
@pytest.mark.parametrize("mode", ["main", "auto"])
def test_an_answer_that_is_none_is_raised_by_its_key_and_teaches_nothing(
    mem: Memory, answer: Any, path: str, mode: str
) -> None:
    """It is a slip of whoever wrote the agent: a run that failed for it would be learnt from for ever."""
    runner = mem.runner(lambda _task: answer, passes(True), user_id="ana")
    with pytest.raises(InvalidInput) as caught:
        runner.run("Go.", mode)
    assert path in [caught.value.path, *(issue["path"] for issue in caught.value.details.get("issues", ()))]
    assert caught.value.hint is not None
    assert list(mem.bank(user_id="ana").event_logs()) == []
    assert all(state.finished_at is not None for state in mem.runs(user_id="ana"))


def test_a_slip_in_a_later_attempt_teaches_nothing_of_the_earlier_ones(mem: Memory) -> None:
    answers = iter(["wrong", {"text": "right", "why": "x"}])
    runner = mem.runner(lambda _task: next(answers), passes(False, True), user_id="ana")
    with pytest.raises(InvalidInput, match=r"\$\.answer\.why"):
        runner.run("Go.", "auto")
    assert list(mem.bank(user_id="ana").event_logs()) == []
    assert {state.finished_at is not None for state in mem.runs(user_id="ana")} == {True}


def test_an_agent_that_ends_its_run_or_cannot_say_what_it_raised(mem: Memory) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    def ends(task: AgentTask) -> str:
        task.run.finish()  # type: ignore[union-attr]
        return "24"

    def raises(_task: AgentTask) -> str:
        raise Mute

    done = mem.runner(ends, passes(True), user_id="ana").run("Go.")
    assert done.result.reason_codes == ("tool_output_invalid",)
    done = mem.runner(raises, passes(True), user_id="ana").run("Go.")
    assert done.result.reason_codes == ("tool_failure",)


@pytest.mark.req("RC-20")
def test_agents_and_verifiers_may_be_coroutines_or_objects(mem: Memory) -> None:
    class Agent:
        async def __call__(self, task: AgentTask) -> str:
            await asyncio.sleep(0)
            return f"Answer: {task.attempt}"

    async def verifier(output: Output, _task: str) -> bool:
        await asyncio.sleep(0)
        return output.text == "Answer: 2"

    done = mem.runner(Agent(), verifier, user_id="ana").run("Go.", "kroll")
    assert done.passed
    assert done.output.text == "Answer: 2"


def test_attempts_run_side_by_side(mem: Memory) -> None:
    together = threading.Barrier(3, timeout=30)

    def agent(task: AgentTask) -> str:
        together.wait()
        return str(task.attempt)

    assert len(mem.runner(agent, passes(FAILED), user_id="ana").run("Go.", "kroll", k=3).attempts) == 3


def test_above_the_users_level_no_word_is_kept(mem: Memory) -> None:
    runner = mem.runner(numbered, passes(FAILED), {"level": "agent"}, user_id="ana", grants=["agent"])
    done = runner.run("Go.", "matts", intent=INTENT)
    for log in logs(done):
        assert "rollout_summary" not in log["outputs"]
        assert "seed_prompt" not in log["run"]["cfg"]
    assert done.attempts[0].summary is not None


def test_a_secret_in_an_answer_is_not_kept_in_a_summary(mem: Memory) -> None:
    key = "sk-" + "a1B2c3D4" * 5
    done = mem.runner(lambda _task: f"Answer: {key}", passes(FAILED), user_id="ana").run("Go.", "kroll", k=2)
    assert key not in str(logs(done))


@pytest.mark.soak
def test_the_same_task_leaves_the_same_bytes(make: Any) -> None:
    told = []
    for engine in ("memory", "sqlite"):
        mem = make(engine)
        done = mem.runner(numbered, passes(UNKNOWN), user_id="ana").run("Go.", "synth", intent=INTENT)
        told.append([each.learned.event_log.to_bytes() for each in done.attempts])
    assert told[0] == told[1]


@pytest.mark.soak
def test_a_seed_is_handed_to_each_attempt(mem: Memory) -> None:
    seeds: list[ReuseStateRecord | None] = []
    runner = mem.runner(lambda task: seeds.append(task.seed) or "done", passes(True), {"reuse": True}, user_id="ana")
    runner.run("Go.", intent=INTENT)
    done = runner.run("Go.", "kroll", k=2, intent=INTENT)
    assert seeds[0] is None
    assert seeds[1] is not None
    assert all(log["reuse_select"]["selected_state_id"] for log in logs(done))


@pytest.mark.soak
@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "nonsense"},
        {"mode": 7},
        {"k": 0},
        {"k": True},
        {"k": 65},
        {"caps": 7},
        {"caps": {"tokens_max": 0}},
        {"caps": {"nonsense": 1}},
        {"known": 7},
        {"known": (3, 2)},
        {"known": (-1, 2)},
        {"seed": 7},
        {"run_id": 7},
        {"query": 7},
        {"timeout_s": 0},
        {"timeout_s": "soon"},
        {"timeout_s": float("nan")},
        {"mode": "tree"},
        {"tree": TreeProblem(0, lambda n: [], lambda n: True)},
        {"mode": "tree", "tree": 7},
    ],
)
def test_what_is_wrong_is_named(mem: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, InvalidRecord)) as caught:
        mem.runner(numbered, passes(True), user_id="ana").run("Go.", **wrong)
    assert str(caught.value)


@pytest.mark.parametrize(
    "policy",
    [
        {"mode": "nonsense"},
        {"timeout_s": -1},
        {"rollout": 7},
        {"rollout": {"summary_tokens_max": 9_000}},
        {"rollout": {"sot_turns_max": 9}},
        {"route": {"k_probe": 0}},
        {"watched": 1},
    ],
)
def test_settings_that_are_wrong_are_named(mem: Memory, policy: dict[str, Any]) -> None:
    with pytest.raises((InvalidInput, InvalidRecord)):
        mem.runner(numbered, passes(True), policy, user_id="ana")
    with pytest.raises(InvalidInput):
        mem.runner(numbered, passes(True), user_id="ana", executor="threads")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        mem.runner(numbered, passes(True), user_id="ana", router="auto")  # type: ignore[arg-type]


@pytest.mark.soak
def test_settings_change_how_far_it_goes(mem: Memory) -> None:
    settings = {"route": {"k_probe": 2, "k_full_min": 2}, "mode": "kroll"}
    done = mem.runner(numbered, passes(UNKNOWN), settings, user_id="ana").run("Go.")
    assert len(done.attempts) == 2
    named = mem.runner(numbered, passes(FAILED), user_id="ana").run("Go.", "kroll", k=2, run_id="r1")
    assert [each.run_id for each in named.attempts] == ["r1", "r1-2"]
