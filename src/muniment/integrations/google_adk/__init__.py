"""Google's Agent Development Kit over a muniment store: sessions, memory, and a packet before each question.

    runner = Runner(
        app=App(name="shop", root_agent=agent, plugins=[MunimentPlugin(mem)]),
        session_service=MunimentSessionService(mem),
        memory_service=MunimentMemoryService(mem),
    )

Each of the three works without the others. What all of them write is the same: one event of the ledger for one of the
kit's, under its id, so that none is written twice. An app is a tenant of its own, as the kit's services keep apps
apart; with `tenant_id=` several share one.

Read in this order: `events` (an event of the kit as one of the ledger), `sessions`, `memory`, `plugin`.

Extra: `muniment[google-adk]`.
"""

from muniment.integrations.google_adk.memory import MunimentMemoryService
from muniment.integrations.google_adk.plugin import MunimentPlugin
from muniment.integrations.google_adk.sessions import MunimentSessionService

__all__ = ["MunimentMemoryService", "MunimentPlugin", "MunimentSessionService"]
