"""docs/reference/metrics.md: every figure that `/metrics` tells."""

from __future__ import annotations

from muniment.surfaces.http._metrics import FAMILIES
from muniment.surfaces.http.telemetry import BUCKETS_S
from reference.prose import headed, table

ABOUT = (
    """
`GET /metrics` of a server, in Prometheus' text format 0.0.4. The setting `metrics` says who may read it: by default
this machine (`loopback`), unless a proxy passed the request on; and, whatever it says but `off`, whoever has a key with
admin access to every tenant.""",
    """
No label is a name that a caller chose: routes are templates, a method that nobody knows is `other`, a request to no
route has the route `-`. The inspector and MCP are the routes `/` and `/mcp`.""",
    """
With several workers each counts for itself in a file of its own, and whichever is asked tells the sum of all of them.
What a worker counted stays counted when it ends; what it had open is gone with it.""",
    f"Latencies have the buckets {', '.join(f'{bound:g}' for bound in BUCKETS_S)} seconds.",
)


def page() -> str:
    rows = (
        (f"`{each.name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels) or "-", each.help)
        for each in FAMILIES
    )
    return "\n".join([*headed("Metrics", *ABOUT), *table(("name", "kind", "labels", "what it is"), rows), ""])
