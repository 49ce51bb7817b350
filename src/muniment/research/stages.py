"""What comes next in a research run, in words."""

from __future__ import annotations

from muniment.research.run_records import GatesFile, ResearchManifest

__all__ = ["next_step"]


def next_step(manifest: ResearchManifest, gates: GatesFile) -> str:
    """The one thing to do now; a gate that fails comes first."""
    waiting = [name for name, standing in manifest.standings.items() if standing == "waiting"]
    rejected = [name for name, standing in manifest.standings.items() if standing == "rejected"]
    failing = {gate.gate: gate for gate in gates.gates if gate.status == "fail"}
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
            return f"supply or look at more sources, then citations again: {'; '.join(failing['C'].reasons)}"
        case "citations":
            return "pack"
        case "summaries":
            return f"gate D: {'; '.join(failing['D'].reasons) if 'D' in failing else 'pack again'}"
        case "synthesis" if manifest.reviews >= manifest.limits.max_review_rounds:
            return "no review round is left"
        case "synthesis" if manifest.reviews:
            return "mend the draft and check it again"
        case "synthesis":
            return "write the report from the synthesis input, then check it"
        case _:
            return "nothing: the report passed"
