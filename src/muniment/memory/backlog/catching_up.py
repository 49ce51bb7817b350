"""Episodes of stores of before, made good: sessions that lack extracts or cuts, a part in each transaction.

What is written to a session makes a part of it good (`memory.extract_writing`, `memory.lists.episode_rows`), and a
rebuild all of a tenant at once. This does it beside everything else, session by session, and never touches the ledger.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from muniment.core.limits import checkpoint
from muniment.memory.extract_writing import catch_up_session, sessions_behind
from muniment.memory.lists.episode_rows import cut_session, sessions_uncut

if TYPE_CHECKING:
    from collections.abc import Callable

    from muniment.core.ports.engine import Condition, Reader
    from muniment.store.context import Context

__all__ = ["catch_up_users", "users_behind"]

STRETCHES = 64
"""Of a session that one transaction makes good."""


def users_behind(reader: Reader) -> list[str]:
    """The users with a session that lacks something. It looks at a row for each stretch of the tenant."""
    uncut = {user_id for user_id, _ in sessions_uncut(reader)}
    return sorted(uncut | {session.user_id for session in sessions_behind(reader)})


def catch_up_users(ctx: Context, tenant_id: str, users: list[str], progress: Callable[[int], None]) -> int:
    """Make good what the sessions of these users lack; answers how many sessions that were."""
    done = 0
    where: tuple[Condition, ...] = (("user_id", "in", tuple(users)),)
    for user_id, session_id in ctx.engine.read(tenant_id, lambda reader: list(sessions_uncut(reader, where))):
        checkpoint()
        ctx.engine.write(tenant_id, partial(cut_session, user_id=user_id, session_id=session_id))
        done += 1
    for session in ctx.engine.read(tenant_id, lambda reader: list(sessions_behind(reader, where))):
        while made := ctx.engine.write(
            tenant_id,
            partial(
                catch_up_session,
                user_id=session.user_id,
                session_id=session.session_id,
                stretches_max=STRETCHES,
            ),
        ):
            checkpoint()
            progress(made)
        done += 1
    return done
