"""Google's Agent Development Kit over a muniment store: sessions, memory, and a packet before each question.

    runner = Runner(
        app=App(name="shop", root_agent=agent, plugins=[MunimentPlugin(mem)]),
        session_service=MunimentSessionService(mem),
        memory_service=MunimentMemoryService(mem),
    )

Each of the three works without the others. All of them write the same: one ledger event per ADK event, under its id, so
that none is written twice. Each app is a separate tenant, as ADK's services keep apps apart; with `tenant_id=` several
share one.

Read in this order: `events` (ADK events as ledger events), `sessions`, `memory`, `plugin`.

Extra: `muniment[google-adk]`.
"""

from muniment.integrations.google_adk.memory import MunimentMemoryService
from muniment.integrations.google_adk.plugin import MunimentPlugin
from muniment.integrations.google_adk.sessions import MunimentSessionService

__all__ = ["MunimentMemoryService", "MunimentPlugin", "MunimentSessionService"]
