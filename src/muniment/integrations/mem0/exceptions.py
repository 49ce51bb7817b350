"""mem0's exceptions under mem0's names, each also an error of muniment and, where mem0 raises one, a `ValueError`.

    from muniment.integrations.mem0.exceptions import ValidationError  # was: from mem0.exceptions import …

They have mem0's attributes (`message`, `error_code`, `details`, `suggestion`, `debug_info`) and ours (`code`, `hint`,
`path`). Nothing here decides when one is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from muniment.errors import (
    InvalidInput,
    ModelFailure,
    MunimentError,
    NotFound,
    QueueFull,
    RateLimited,
    Refused,
    StorageFailure,
    StorageLost,
    Unauthorized,
)

__all__ = [
    "AuthenticationError",
    "ConfigurationError",
    "LLMError",
    "MemoryError",
    "MemoryNotFoundError",
    "NetworkError",
    "RateLimitError",
    "UnsupportedError",
    "ValidationError",
    "translated",
]


class MemoryError(MunimentError):
    """The root of mem0's tree; `suggestion` is our `hint`."""

    usual_code = "MEM_001"
    """mem0's `error_code`, where an instance has none of its own."""

    def __init__(
        self,
        message: str,
        error_code: str | None = None,
        details: Mapping[str, Any] | None = None,
        suggestion: str | None = None,
        debug_info: Mapping[str, Any] | None = None,
        *,
        path: str | None = None,
    ) -> None:
        super().__init__(message, path=path, hint=suggestion, details=details)
        self.error_code = error_code or self.usual_code
        self.debug_info = dict(debug_info or {})

    @property
    def suggestion(self) -> str:
        return self.hint

    def __str__(self) -> str:
        return self.message  # as mem0's say it, for whoever compares the words

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            _again,
            (type(self), self.message, self.error_code, self.details, self.hint, self.debug_info, self.path),
        )

    @classmethod
    def of(cls, error: MunimentError, **debug_info: Any) -> Self:
        """Another error of ours in mem0's words."""
        made = cls(error.message, None, error.details, error.hint, {"code": error.code, **debug_info}, path=error.path)
        made.__cause__ = error
        return made


def _again(cls: type[MemoryError], *parts: Any) -> MemoryError:
    *most, path = parts
    return cls(*most, path=path)


class ValidationError(MemoryError, InvalidInput, ValueError):
    """What was given is not what the call takes; nothing was changed."""

    usual_code = "VALIDATION_000"


class ConfigurationError(MemoryError, InvalidInput, ValueError):
    """A configuration that cannot be taken as it stands."""

    usual_code = "CFG_001"


class UnsupportedError(MemoryError, InvalidInput, ValueError, NotImplementedError):
    """Something that a store of one's own does not do; `suggestion` is the way out."""

    usual_code = "UNSUPPORTED_001"


class MemoryNotFoundError(MemoryError, NotFound, ValueError):
    """There is no such memory."""

    usual_code = "MEM_404"


class AuthenticationError(MemoryError, Unauthorized):
    """The server does not let this key in."""

    usual_code = "AUTH_001"


class RateLimitError(MemoryError, RateLimited):
    """Too many requests; `debug_info["retry_after"]` says when to come back."""

    usual_code = "RATE_001"


class LLMError(MemoryError, ModelFailure):
    """The model that proposes facts did not do its part. What was said is kept all the same."""

    usual_code = "LLM_001"


class NetworkError(MemoryError, StorageLost):
    """The server was not reached, or broke off."""

    usual_code = "NET_001"


def translated(error: MunimentError) -> MunimentError:
    """An error of a connected store as mem0's client raises it; any other as it is."""
    match error:
        case MemoryError():
            return error
        case RateLimited() | QueueFull():
            return RateLimitError.of(error, retry_after=error.details.get("retry_after_s"))
        case Unauthorized() | Refused(status=403):
            return AuthenticationError.of(error)
        case StorageLost():
            return NetworkError.of(error)
        case StorageFailure() if type(error) is StorageFailure:  # of a connection: the server was not reached
            return NetworkError.of(error)
        case _:
            return error
