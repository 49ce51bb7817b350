"""A store opened with its object store: what was named is checked before anything is opened, and joined after."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from muniment.core.outside.object_keys import load_object_keys
from muniment.core.outside.object_opening import open_objects
from muniment.errors import InvalidInput, MunimentError
from muniment.store.objects.outside import open_outside
from muniment.store.objects.view import OutsideEngine

if TYPE_CHECKING:
    from muniment.core.ports.engine import Engine
    from muniment.store.context import Context

__all__ = ["Joined", "objects_given"]

Joined = Callable[["Context"], "Context"]


def objects_given(objects: Any, key: Any, *, read_only: bool) -> Joined:
    """What lets a context see through to the object store that is named; nothing is changed where none is."""
    store = open_objects(objects)
    if store is None and key not in (None, "none"):
        raise InvalidInput("objects_key is for objects, and none are named", path="$.objects_key")
    keys = load_object_keys(key)

    def join(ctx: Context) -> Context:
        if store is None:
            return ctx
        try:
            ctx.outside = open_outside(ctx.engine, store, keys, ctx.ids, read_only=read_only)
        except MunimentError:
            ctx.engine.close()
            raise
        ctx.engine = cast("Engine", OutsideEngine(ctx.engine, ctx.outside))
        return ctx

    return join
