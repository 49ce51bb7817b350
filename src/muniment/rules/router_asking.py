"""Routing by what was logged (RC-26), and the rates that say whether more than code is needed (RC-04).

decision = mem.learning.route(bucket_key="I2|math|clarity_high", user_id="ana")
decision.tier, decision.k, decision.reasons
mem.learning.observe_rates(user_id="ana", since="2026-05-01").advice
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from muniment.core.instants import check_window, format_instant, parse_instant
from muniment.errors import InvalidInput
from muniment.learning.keys import intent_key
from muniment.learning.log_reading import LogWindow
from muniment.learning.projection import core_name
from muniment.learning.recalling import bucket_named, intent_given
from muniment.memory.patches import instant_of
from muniment.rules.route_reading import read_rates, read_stats
from muniment.rules.routing.observables import escalation, observables_of
from muniment.rules.routing.records import RateReport, RouteRequest
from muniment.rules.routing.router import route
from muniment.verify.results import parse_bucket_key

if TYPE_CHECKING:
    from datetime import datetime

    from muniment.rules.routing.bucket_stats import BucketStats
    from muniment.rules.routing.records import RouteDecision
    from muniment.store.context import Context

__all__ = ["Routing"]


class Routing:
    """The router of one bank. Thread-safe."""

    def __init__(self, ctx: Context, tenant_id: str, owner: str) -> None:
        self._ctx, self._tenant_id, self._owner = ctx, tenant_id, owner

    def decide(
        self, asked: RouteRequest | Mapping[str, Any] | None = None, *, intent: Any = None, **more: Any
    ) -> RouteDecision:
        """How to try a task: what is known of it as a `RouteRequest`, its plain form, or by name."""
        request = request_of(asked, more)
        window = self._window(request.bucket_key, intent)
        stats, hits = self._ctx.engine.read(
            self._tenant_id, lambda reader: read_stats(reader, window, request.cluster_id)
        )
        if not request.cluster_hits and hits:
            request = request.model_copy(update={"cluster_hits": hits})
        return route(request, stats, self._ctx.policy.route)

    def stats(self, bucket_key: str | None = None, *, intent: Any = None) -> BucketStats:
        """What a decision on a bucket rests on."""
        window = self._window(bucket_named(bucket_key), intent)
        return self._ctx.engine.read(self._tenant_id, lambda reader: read_stats(reader, window))[0]

    def rates(
        self,
        *,
        bucket_key: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> RateReport:
        """The observables over the runs learnt from `since` until before `until`, and what they ask for."""
        start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
        check_window(start, end)
        policy, bucket = self._ctx.policy.route, bucket_named(bucket_key)
        window = LogWindow(self._owner, start, end, bucket)
        total, buckets = self._ctx.engine.read(
            self._tenant_id, lambda reader: read_rates(reader, window, policy.observe.clusters_max)
        )
        seen = observables_of(total, policy, bucket_key=bucket, start=start, end=end)
        apart = (
            observables_of(each, policy, bucket_key=name or None, start=start, end=end)
            for name, each in sorted(buckets.items())
        )
        return RateReport(observables=seen, advice=escalation(seen, policy), buckets=tuple(apart))

    def _window(self, bucket_key: str | None, intent: Any) -> LogWindow:
        policy, now = self._ctx.policy.route, self._ctx.now()
        start = format_instant(parse_instant(now) - timedelta(days=policy.window_days))
        name = None if intent is None else core_name(intent_key(intent_given(intent)))
        return LogWindow(self._owner, start, None, bucket_key, name, policy.runs_max)


def request_of(asked: RouteRequest | Mapping[str, Any] | None, more: Mapping[str, Any]) -> RouteRequest:
    """What a caller asked; the impact is that of the bucket, unless another is named."""
    if isinstance(asked, RouteRequest):
        if more:
            raise InvalidInput("a RouteRequest says it all", path=f"$.{min(more)}", hint="name it in the request")
        return asked
    if asked is not None and not isinstance(asked, Mapping):
        raise InvalidInput("a request is an object", path="$.asked", hint="such as {'impact': 'high'}")
    plain = {name: value for name, value in {**(asked or {}), **more}.items() if value is not None}
    bucket = bucket_named(plain.get("bucket_key"))
    if bucket is not None and "impact" not in plain:
        plain["impact"] = parse_bucket_key(bucket).impact
    return RouteRequest.from_wire(
        {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
    )
