"""The seam that integrations use: one session of one user, with what an agent's framework needs of memory.

    session = SessionMemory(mem, user_id="ana", session_id="chat-1")
    build = session.prepare(messages)                          # what is new is recorded, a packet is composed
    session.record(messages, answer=[answer], build=build)     # the answer, with what it was told
    session.search("where she lives"), session.forget(hit.id)

Read in this order: `memory` (the class), `recording` (what of a list is new), `alignment` and `matching` (how that is
found out of a list that was cut or edited), `questions` (what is asked, and the packet it keeps), `functions` (tools
for a model). Nothing here knows a framework: each has a module of its own, which brings its messages into the form of
an API and puts the packet where its models look.
"""

from muniment.integrations.session.functions import memory_functions
from muniment.integrations.session.memory import AsyncSessionMemory, SessionMemory

__all__ = ["AsyncSessionMemory", "SessionMemory", "memory_functions"]
