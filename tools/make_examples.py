"""Write the examples of the OpenAPI document: a short story, told to a real server, each exchange as it was.

The store's clock ticks and its ids count, so the same story gives the same bytes: `--check` tells it again and fails
where an answer is not what the file says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.surfaces.http.app import create_app
from muniment.surfaces.operations.openapi import EXAMPLES

ABOUT = "Exchanges with a real server, as they were: made by tools/make_examples.py, which also checks them."
ANA = "/v1/tenants/default/users/ana"
TRIP = f"{ANA}/runs/trip"
MESSAGES = [
    {"role": "user", "content": "Find me a vegetarian place near the river for Friday."},
    {"role": "assistant", "content": "I found two; which evening suits you better, early or late?"},
]


def tell(client: TestClient) -> dict[str, Any]:
    """The exchanges, by the name of the operation."""
    told: dict[str, Any] = {}

    def ask(name: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        response = client.request(method, path, json=body, **more)
        assert response.status_code < 300, response.text
        asked = {"method": method, "path": path, **more, **({} if body is None else {"body": body})}
        told[name] = {"request": asked, "status": response.status_code, "answer": response.json()}
        return told[name]["answer"]

    started = {"run_id": "trip", "session_id": "monday", "agent_id": "concierge", "objective": "Plan a dinner"}
    ask("start_run", "POST", f"{ANA}/runs", started)
    words = {"role": "user", "content": "I moved to Berlin in May. I do not eat meat.", "ts": "2026-06-01T09:30:00Z"}
    said = ask("observe", "POST", f"{TRIP}/events", words, headers={"Idempotency-Key": "turn-1"})
    weather = {"name": "weather", "args": {"city": "Berlin"}, "content": "Berlin, Friday: sunny, 24 degrees."}
    ask("observe_tool", "POST", f"{TRIP}/tool-results", weather)
    dinner = {"objective": "Find a place", "run_id": "dinner", "session_id": "tuesday"}
    client.post(f"{ANA}/runs", json=dinner)
    ask("record", "POST", f"{ANA}/runs/dinner/messages", {"messages": MESSAGES})
    city = {"key": "user.city", "value": "Berlin", "sources": [said["id"]], "quote": "I moved to Berlin"}
    ask("remember", "POST", f"{TRIP}/facts", city)
    ask("facts", "GET", f"{ANA}/facts")
    ask("events", "GET", f"{ANA}/events", params={"limit": 2})
    ask("search", "POST", f"{ANA}/search", {"query": "What do I eat?", "k": 2})
    asked = {"purpose": "responder", "query": "Where should we eat on Friday?", "max_tokens": 512}
    build = ask("compose", "POST", f"{TRIP}/compose", asked, headers={"Idempotency-Key": "prompt-1"})
    mark = next(number for number, source in sorted(build["marks"].items()) if source == said["id"])
    answer = {"answer": f"Somewhere in Berlin without meat [{mark}]."}
    ask("resolve_answer", "POST", f"{ANA}/builds/{build['id']}/resolve", answer)
    pointer = {"namespace": "event", "event_id": said["id"], "quote": "I do not eat meat."}
    ask("resolve", "POST", f"{ANA}/resolve", {"pointer": pointer})
    ask("why", "POST", f"{ANA}/why", {"text": "I do not eat meat."})
    ask("finish_run", "POST", f"{TRIP}/finish", {"stop_reason": "OBJECTIVE_ACHIEVED"})
    ask("forget", "POST", f"{ANA}/forget", {"event": said["id"]})
    ask("changes", "GET", f"{ANA}/changes")
    return told


def text() -> str:
    """The file, as the server of today tells it."""
    with muniment.open(clock=TickingClock(), ids=CountingIds()) as memory:
        app = create_app(memory)
        with TestClient(app, base_url="http://localhost") as client:
            told = tell(client)
    return json.dumps({"about": ABOUT, "examples": told}, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    file = Path(str(EXAMPLES))
    if "--check" in sys.argv:
        sys.exit(0 if file.read_text("utf-8") == text() else "the examples are stale: make generate")
    file.write_text(text(), "utf-8")
