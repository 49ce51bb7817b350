"""The common base of integrations: one session of one user, with the memory operations of an agent's framework.

    session = SessionMemory(mem, user_id="ana", session_id="chat-1")
    build = session.prepare(messages)                          # records new messages, composes a packet
    session.record(messages, answer=[answer], build=build)     # the answer, with its packet
    session.search("where she lives"), session.forget(hit.id)

Read in this order: `memory` (the class), `recording` (finding the new messages of a list), `alignment` (the same for
lists that were cut or edited), `questions` (the last question of a list), `in_view` (packets that stay in the list),
`functions` (tools for a model). Nothing here knows a framework: each has its own module, which converts its messages to
the form of an API and inserts the packet.
"""

from muniment.integrations.session.functions import memory_functions
from muniment.integrations.session.memory import AsyncSessionMemory, SessionMemory

__all__ = ["AsyncSessionMemory", "SessionMemory", "memory_functions"]
