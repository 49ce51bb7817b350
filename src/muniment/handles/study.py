"""A research run's handle: from its question to a checked report, in the store and its directory alike.

study = mem.research("How do heat pumps compare with gas boilers in cold climates?", user_id="ana")
study.route()
for perspective in study.perspectives():
    output = my_agent(study.prompt(perspective.id))
    study.ingest(perspective.id, output, tool_use={"search_calls": 3, "fetch_calls": 4})
study.pivot()
study.supply([{"url": …, "text": …}])
study.citations(); study.pack()
report = my_writer(study.synthesis_input().text)
study.check(report).findings
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from muniment.core.policy import ResearchLimits
from muniment.errors import Conflict, DuplicateId, InvalidInput, MunimentError
from muniment.research.projection import study_id
from muniment.research.records import GatesFile, ResearchManifest
from muniment.research.store import (
    StudyChange,
    StudyView,
    check_revision,
    commit,
    keep_checks,
    load_view,
    wave_path,
)
from muniment.store.items import latest

if TYPE_CHECKING:
    from muniment.contracts.research import Perspective, SummaryPack
    from muniment.core.listing import Listing
    from muniment.handles.run import Run
    from muniment.memory.corpus import Corpus
    from muniment.research.records import (
        AgentResult,
        CheckedClaim,
        Citation,
        DraftCheck,
        PivotDecision,
        SourceCheck,
        SuppliedSource,
        SynthesisInput,
        WaveResult,
    )
    from muniment.research.run_directory import RunDirectory
    from muniment.research.url_check import UrlChecker
    from muniment.store.context import Context
    from muniment.store.ledger import RunState, StopReason

__all__ = ["Study", "StudyStatus", "check_question", "open_study", "start_study"]

T = TypeVar("T")
Agent = Callable[["str", "Perspective"], "str | Mapping[str, Any] | AgentResult"]
"""Takes the prompt and the perspective; returns Markdown or an agent result."""

TASK_TYPE = "research"
MODES = ("quick", "standard", "deep")
QUESTION_CHARS_MAX = 4_000
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """The state of a research run."""

    manifest: ResearchManifest
    gates: GatesFile
    perspectives: tuple[Perspective, ...]
    directory: str
    edited: tuple[str, ...]
    """Files that differ from the store."""
    citations: Mapping[str, int]
    """Status → count, once they are settled."""

    @property
    def next(self) -> str:
        """The next step, in words."""
        manifest, gates = self.manifest, self.gates
        waiting = [name for name, standing in manifest.standings.items() if standing == "waiting"]
        rejected = [name for name, standing in manifest.standings.items() if standing == "rejected"]
        failing = {gate.gate: "; ".join(gate.reasons) for gate in gates.gates if gate.status == "fail"}
        match manifest.stage:
            case "init":
                return "route: choose the perspectives"
            case "wave1" | "wave2" if waiting or rejected:
                parts = [f"ingest {', '.join(waiting)}"] if waiting else []
                parts += [f"ingest {', '.join(rejected)} again, or give up"] if rejected else []
                return "; ".join(parts)
            case "wave1" if manifest.pivot is None:
                return "pivot: decide on a second wave"
            case "wave1" | "wave2":
                return "supply or look at the sources, then citations"
            case "citations" if "C" in failing:
                return f"supply or look at more sources, then citations again: {failing['C']}"
            case "citations":
                return "pack"
            case "summaries":
                return f"gate D: {failing['D']}" if "D" in failing else "gate D: pack again"
            case "synthesis" if manifest.reviews >= manifest.limits.max_review_rounds:
                return "no review round is left"
            case "synthesis" if manifest.reviews:
                return "correct the draft and check it again"
            case "synthesis":
                return "write the report from the synthesis input, then check it"
            case _:
                return "nothing: the report passed"


class Study:
    """A research run, made by `Memory.research`. Thread-safe; of several processes one advances and the others get
    `StaleState`. A step that is not due raises `WrongStage`, a failed gate `GateFailed`.
    """

    def __init__(self, ctx: Context, run: Run, directory: RunDirectory) -> None:
        self._ctx = ctx
        self._run = run
        self._directory = directory

    def __repr__(self) -> str:
        return f"<Study {self.run_id} of {self._run.scope.user_id}>"

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._run.run_id

    @property
    def run(self) -> Run:
        """The run it belongs to."""
        return self._run

    @property
    def directory(self) -> Path:
        """The directory of the run's files."""
        return self._directory.path

    # -- reading ------------------------------------------------------------------------------------------

    def manifest(self) -> ResearchManifest:
        """The run's manifest: question, limits, stage."""
        return self._view().manifest

    def perspectives(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Perspective]:
        """All perspectives; those of a second wave come last."""
        from muniment.core.listing import list_items

        return list_items("perspectives", self._view().perspectives, limit, cursor)

    def prompt(self, perspective_id: str) -> str:
        """The prompt for a perspective's agent; after a rejected output, with the required changes."""
        from muniment.research.prompt import research_prompt
        from muniment.research.waves import find_perspective

        view = self._view()
        perspective = find_perspective(view, perspective_id)
        last = next((each for each in view.manifest.results if each.perspective_id == perspective.id), None)
        return research_prompt(view.manifest.question, perspective, None if last is None else last.directive)

    def status(self) -> StudyStatus:
        """The run's stage, the faults of its files, and the next step."""
        from collections import Counter

        from muniment.research.run_directory import edited_files

        view = self._view()
        counted = Counter(citation.status for citation in view.citations)
        return StudyStatus(
            manifest=view.manifest,
            gates=self._gates(view),
            perspectives=view.perspectives,
            directory=str(self.directory),
            edited=tuple(edited_files(self._directory, view)),
            citations=dict(sorted(counted.items())),
        )

    def gates(self) -> GatesFile:
        """The current results of gates A to E, with D measured on the bytes on disk."""
        return self._gates(self._view())

    def claims(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[CheckedClaim]:
        """The claims checked for the pack, flagged ones included, each with its reason."""
        from muniment.core.listing import list_items
        from muniment.research.pack import claims_of

        return list_items("claims", claims_of(self._view()), limit, cursor)

    def sources(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Citation]:
        """The citations as last settled."""
        from muniment.core.listing import list_items

        return list_items("sources", self._view().citations, limit, cursor)

    # -- advancing ----------------------------------------------------------------------------------------

    def route(
        self,
        perspectives: Any = None,
        *,
        propose: Callable[[str], Any] | None = None,
        expected_revision: int | None = None,
    ) -> tuple[Perspective, ...]:
        """Choose the perspectives: the built-in ones, those given, or what `propose(question)` returns (a model, say),
        under the same rules.
        """
        from muniment.research.waves import route

        if perspectives is not None and propose is not None:
            raise InvalidInput("give perspectives or propose, not both", path="$.perspectives")
        if propose is not None and not callable(propose):
            raise InvalidInput("propose should be a function of the question", path="$.propose")
        if propose is not None:
            perspectives = propose(self._view().manifest.question)
            if perspectives is None:
                raise InvalidInput("propose answered nothing", path="$.propose")
        policy = self._ctx.policy.research
        self._move(lambda view: (route(view, policy, perspectives, self._ctx.now()), None), expected_revision)
        return self._view().perspectives

    def ingest(
        self,
        perspective_id: str,
        output: str | Mapping[str, Any] | AgentResult | PathLike[str],
        *,
        tool_use: Mapping[str, int] | None = None,
        sources: Iterable[SuppliedSource | Mapping[str, Any]] | None = None,
        change_note: str | None = None,
        expected_revision: int | None = None,
    ) -> WaveResult:
        """Accept an agent's output for a perspective: Markdown, a path to it, or a record. A rejected output names its
        breaches, and `directive` is the message for the agent.
        """
        from muniment.research.sources import add_sources, sources_given
        from muniment.research.waves import agent_result, check_size, judge_output

        policy = self._ctx.policy.research
        if isinstance(output, PathLike):
            output = _read_output(Path(fspath(output)), policy.output_bytes_max)
        read = None if sources is None else sources_given(sources)
        given = agent_result(output, tool_use, read, change_note)
        check_size(given.markdown, policy)

        def decide(view: StudyView) -> tuple[StudyChange | None, WaveResult]:
            verdict = judge_output(view, perspective_id, given, policy)
            add_sources(self._ctx, self._corpus(view), given.sources)
            return verdict.change, verdict.result

        own = [wave_path(wave, str(perspective_id)) for wave in (1, 2)]  # the agent may have written it there itself
        return self._move(decide, expected_revision, but=own)

    def collect(
        self, agent: Agent, *, perspective_ids: Iterable[str] | None = None, executor: Executor | None = None
    ) -> list[WaveResult]:
        """Call an agent for every perspective that is waiting or was rejected, and ingest its output. With an executor
        the calls run in parallel. Errors and refusals are raised after all calls are done.
        """
        if not callable(agent):
            raise InvalidInput("an agent is a function of a prompt and a perspective", path="$.agent")
        view = self._view()
        standings = view.manifest.standings
        wanted = (
            [each for each, standing in standings.items() if standing in ("waiting", "rejected")]
            if perspective_ids is None
            else list(perspective_ids)
        )
        from muniment.research.waves import find_perspective

        chosen = [find_perspective(view, each) for each in wanted]
        prompts = [self.prompt(each.id) for each in chosen]
        results: list[WaveResult] = []
        failed: BaseException | None = None
        with ExitStack() as stack:
            workers = stack.enter_context(ThreadPoolExecutor(1)) if executor is None else executor
            calls = [workers.submit(agent, prompt, each) for prompt, each in zip(prompts, chosen, strict=True)]
            for perspective, call in zip(chosen, calls, strict=True):
                error = call.exception()
                if error is None:
                    try:
                        results.append(self.ingest(perspective.id, call.result()))
                    except MunimentError as refused:
                        error = refused
                failed = failed or error
        if failed is not None:
            raise failed
        return results

    def give_up(self, perspective_id: str, reason: str, *, expected_revision: int | None = None) -> None:
        """Abandon a perspective. It remains a gap, and gates B and D count it."""
        from muniment.research.waves import give_up

        self._move(lambda view: (give_up(view, perspective_id, reason), None), expected_revision)

    def pivot(self, *, second_wave: bool | None = None, expected_revision: int | None = None) -> PivotDecision:
        """Decide, after the first wave, whether its gaps need a second one. An overruled decision says so."""
        from muniment.research.waves import decide_second_wave

        policy = self._ctx.policy.research
        return self._move(
            lambda view: decide_second_wave(view, policy, second_wave, self._ctx.now()), expected_revision
        )

    def supply(self, sources: Iterable[SuppliedSource | Mapping[str, Any]]) -> list[str]:
        """Store pages or snippets that somebody really read: each makes its citation valid. Returns their cids."""
        from muniment.research.sources import add_sources, sources_given

        view = self._view()
        _check_open(view)
        return add_sources(self._ctx, self._corpus(view), sources_given(sources))

    def look(self, checker: UrlChecker, urls: Iterable[str] | None = None) -> list[SourceCheck]:
        """Check addresses over the network: those given, or all in the outputs that have no stored text yet.

        Nothing else in muniment contacts a source by itself.
        """
        from muniment.memory.patches import texts_of
        from muniment.research.sources import documents_of, gather_sources, look_at, readings_of
        from muniment.research.urls import normalize_url

        if not callable(getattr(checker, "check_many", None)):
            raise InvalidInput(
                "checker has no check_many",
                path="$.checker",
                hint="UrlChecker() from muniment.research.url_check",
            )
        view = self._view()
        _check_open(view)
        corpus = self._corpus(view)
        if urls is None:
            stored = documents_of(corpus)
            found = gather_sources(readings_of(view))
            wanted = [each.url_original for each in found if each.problem is None and each.cid not in stored]
        else:
            wanted = list(texts_of(urls, "$.urls"))
            for url in wanted:
                normalize_url(url)
        checks = look_at(view, corpus, checker, wanted, self._ctx.now())
        keep_checks(self._run._writer(), checks)
        return checks

    def citations(self, *, expected_revision: int | None = None) -> list[Citation]:
        """Settle the status of every source by what was supplied and checked; measures gate C. Repeatable."""
        from muniment.research.sources import settle_citations

        policy = self._ctx.policy.research
        return self._move(
            lambda view: settle_citations(view, self._corpus(view), policy, self._ctx.now()), expected_revision
        )

    def pack(self, *, expected_revision: int | None = None) -> SummaryPack:
        """Check every claim against its sources, write the bounded summaries and the pack, measure gate D."""
        from muniment.research.pack import pack_study

        policy = self._ctx.policy
        return self._move(lambda view: pack_study(view, self._corpus(view), policy, self._ctx.now()), expected_revision)

    def synthesis_input(self) -> SynthesisInput:
        """The pack and its summaries only; refused if one of their files was edited."""
        from muniment.research.pack import synthesis_input
        from muniment.research.run_directory import check_directory

        with self._directory.locked():
            view = self._view()
            check_directory(self._directory, view)
        return synthesis_input(view)

    def check(
        self, draft: str | PathLike[str], *, sections: Sequence[str] | None = None, expected_revision: int | None = None
    ) -> DraftCheck:
        """Check a draft report against the pack: figures without a citation, citations that are unknown, invalid or
        unsupported, missing sections. A draft with no finding ends the research.
        """
        from muniment.research.pack import check_report

        text = (
            _read_output(Path(fspath(draft)), self._ctx.policy.research.output_bytes_max)
            if isinstance(draft, PathLike)
            else draft
        )
        policy = self._ctx.policy
        return self._move(
            lambda view: check_report(view, self._corpus(view), policy, text, sections, self._ctx.now()),
            expected_revision,
        )

    def resume(self) -> list[str]:
        """Restore the store's files in the directory, overwriting it; returns the paths written."""
        from muniment.research.run_directory import publish

        with self._directory.locked():
            written = publish(self._directory, self._view())
            self._directory.clear_pending()
        return written

    def finish(self, stop_reason: StopReason = "OBJECTIVE_ACHIEVED") -> RunState:
        """End the run. Its study stays unchanged."""
        return self._run.finish(stop_reason)

    # -- transitions --------------------------------------------------------------------------------------

    def _view(self) -> StudyView:
        return load_view(self._ctx, self._run.scope)

    def _corpus(self, view: StudyView) -> Corpus:
        from muniment.memory.corpus import Corpus

        scope = self._run.scope
        return Corpus(self._ctx, view.manifest.corpus_id, scope.tenant_id, scope.user_id)

    def _gates(self, view: StudyView) -> GatesFile:
        from muniment.research.pack import evaluate_gates

        paths = [path for path in view.artifacts if path.startswith("summaries/")]
        files = {path: data for path in paths if (data := self._directory.read(path)) is not None}
        gates = evaluate_gates(view, files, self._ctx.policy, self._ctx.now())
        by_name = {gate.gate: gate for gate in gates}
        return view.gates.model_copy(update={"gates": tuple(by_name[gate.gate] for gate in view.gates.gates)})

    def _move(
        self,
        decide: Callable[[StudyView], tuple[StudyChange | None, T]],
        expected_revision: int | None,
        but: Sequence[str] = (),
    ) -> T:
        """Make one change: check files, decide, write the store, write files. A crash leaves the state before or after.

        `decide` returns the change, if any, and the caller's result.
        """
        from muniment.research.run_directory import check_directory, publish

        directory = self._directory
        with directory.locked():
            view = self._view()
            if expected_revision is not None:
                check_revision(view.revision, expected_revision)
            check_directory(directory, view, but=but)
            change, answer = decide(view)
            if change is None:
                return answer
            directory.mark_pending(view.revision + 1)
            try:
                commit(self._run._writer(), view, None, change, str(directory.path))
            except MunimentError:
                if self._view().revision == view.revision:  # no change was made: the files are already correct
                    directory.clear_pending()
                raise
            publish(directory, view.next_view())
            directory.clear_pending()
        return answer


def _check_open(view: StudyView) -> None:
    from muniment.research.waves import need_stage

    need_stage(view, "init", "wave1", "wave2", "citations", "summaries", "synthesis", doing="a source")


def _read_output(path: Path, bytes_max: int) -> str:
    from muniment.memory.corpus import read_text_file

    return read_text_file(path, bytes_max, "research.output_bytes_max")


# -- starting and reopening ---------------------------------------------------------------------------


def _refuse_taken(ctx: Context, tenant_id: str, user_id: str, run_id: str) -> None:
    """Raise for a taken run id: this user's research run is named, another user's is only reported as taken (X-09)."""
    taken = ctx.engine.read(tenant_id, lambda reader: latest(reader, study_id(run_id)))
    if taken is None:
        return
    if taken.user_id != user_id:
        raise DuplicateId(f"the id {run_id!r} is taken", path="$.run_id", hint="leave run_id out to have one minted")
    taken.plain()  # raises if it was forgotten
    raise Conflict(f"the research run {run_id} exists", path="$.run_id", hint="open_research(run_id) takes it up again")


def start_study(
    ctx: Context,
    make_run: Callable[[str, str], Run],
    question: Any,
    *,
    run_id: str | None,
    mode: Any,
    limits: Any,
    agent_types: Any,
    directory: str | PathLike[str] | None,
    tenant_id: str,
    user_id: str,
) -> Study:
    """Start a research run; its question and limits are recorded once and pinned."""
    from muniment.memory.patches import texts_of
    from muniment.research.waves import well_formed, without_secrets

    asked = check_question(question)
    if mode not in MODES:
        raise InvalidInput(f"{mode!r:.40} is not a mode", path="$.mode", hint=f"one of {', '.join(MODES)}")
    bounds = _limits(ctx, limits)
    known = ctx.policy.research.agent_types if agent_types is None else texts_of(agent_types, "$.agent_types")
    for at, name in enumerate(known):
        well_formed(name, f"$.agent_types[{at}]")
    if not known:
        raise InvalidInput("at least one agent type has to be registered", path="$.agent_types")
    id_ = ctx.ids.new("dr") if run_id is None else run_id
    if not isinstance(id_, str) or not _RUN_ID.fullmatch(id_):
        raise InvalidInput(
            "a research run's id names a folder: letters, digits, dot, dash, underscore, at most 100", path="$.run_id"
        )
    _refuse_taken(ctx, tenant_id, user_id, id_)
    run = make_run(id_, asked)
    now = ctx.now()
    manifest = ResearchManifest(
        run_id=id_,
        revision=1,
        question=without_secrets(ctx, asked),
        mode=mode,
        language=_language_of(asked),
        stage="init",
        limits=bounds,
        policy_digest=ctx.policy.digest,
        agent_types=tuple(known),
        created_at=now,
        updated_at=now,
        corpus_id=f"research-{id_}" if len(id_) <= 50 else study_id(id_),
    )
    place = _directory(directory, id_)
    study = Study(ctx, run, place)
    with place.locked():
        from muniment.research.run_directory import publish
        from muniment.research.store import MANIFEST

        if place.read(MANIFEST) is not None:
            raise Conflict(
                f"{place.path} holds the files of another run",
                path="$.directory",
                hint="choose a directory of its own for each run",
            )
        place.mark_pending(1)
        commit(run._writer(), None, manifest, StudyChange(what="started", stage="init", reason=mode), str(place.path))
        publish(place, study._view())
        place.clear_pending()
    return study


def open_study(ctx: Context, run: Run, directory: str | PathLike[str] | None) -> Study:
    """Reopen a research run, in its directory or in the one it was moved to."""
    view = load_view(ctx, run.scope)
    return Study(ctx, run, _directory(directory or view.directory, None))


def _directory(given: str | PathLike[str] | None, run_id: str | None) -> RunDirectory:
    from muniment.research.run_directory import RunDirectory, default_root

    if given is None:
        assert run_id is not None
        return RunDirectory(default_root() / run_id)
    named = fspath(given) if isinstance(given, str | PathLike) else None
    if not isinstance(named, str) or not named or "\0" in named:
        raise InvalidInput("a directory is named by its path", path="$.directory")
    try:
        named.encode()
        return RunDirectory(Path(named).expanduser().absolute())
    except (UnicodeEncodeError, RuntimeError) as error:  # RuntimeError: `~` without a home directory
        raise InvalidInput(f"a directory cannot be so named: {error}", path="$.directory") from None


def check_question(given: Any) -> str:
    """Return the question, checked: not empty, and no longer than a page."""
    if not isinstance(given, str) or not any(map(str.isalnum, given)):
        raise InvalidInput("a research run starts with a question", path="$.question")
    asked = given.strip()
    try:
        asked.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the question holds a lone surrogate", path="$.question") from None
    if len(asked) > QUESTION_CHARS_MAX:
        raise InvalidInput(
            f"a question of {len(asked)} characters is over the limit of {QUESTION_CHARS_MAX}",
            path="$.question",
            hint="ask in a page; supply long material as sources",
        )
    return asked


def _language_of(question: str) -> Literal["en", "zh"]:
    """Return "zh" if Han characters outnumber other words and it is neither Japanese nor Korean; else "en"."""
    han = len(re.findall("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]", question))
    kana_hangul = len(re.findall("[\u3041-\u30ff\uac00-\ud7a3]", question))
    words = len(re.findall(r"[^\W\d_\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]+", question))
    return "zh" if han and han >= words and kana_hangul * 10 <= han else "en"


def _limits(ctx: Context, given: Any) -> ResearchLimits:
    if given is None:
        given = {}
    if isinstance(given, ResearchLimits):
        given = given.model_dump()
    if not isinstance(given, Mapping):
        raise InvalidInput("limits is an object", path="$.limits", hint='such as {"max_summary_kb": 5}')
    plain = ctx.policy.research.limits.model_dump() | dict(given)
    hint = f"there are {', '.join(ResearchLimits.model_fields)}; all but max_wave2_agents are above zero"
    return ResearchLimits.of_given(plain, "not valid limits", path="$.limits", hint=hint)
