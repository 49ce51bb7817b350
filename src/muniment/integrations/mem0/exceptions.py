"""mem0's exceptions under mem0's names, each also a muniment error and, where mem0 raises one, a `ValueError`.

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
    """mem0's `error_code` for instances without their own."""

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
        return self.message  # the message alone, as in mem0, for callers that compare it

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            _again,
            (type(self), self.message, self.error_code, self.details, self.hint, self.debug_info, self.path),
        )

    @classmethod
    def of(cls, error: MunimentError, **debug_info: Any) -> Self:
        """Convert another of our errors to mem0's form."""
        made = cls(error.message, None, error.details, error.hint, {"code": error.code, **debug_info}, path=error.path)
        made.__cause__ = error
        return made


def _again(cls: type[MemoryError], *parts: Any) -> MemoryError:
    *most, path = parts
    return cls(*most, path=path)


class ValidationError(MemoryError, InvalidInput, ValueError):
    """Invalid arguments; nothing was changed."""

    usual_code = "VALIDATION_000"


class ConfigurationError(MemoryError, InvalidInput, ValueError):
    """An invalid configuration."""

    usual_code = "CFG_001"


class UnsupportedError(MemoryError, InvalidInput, ValueError, NotImplementedError):
    """A feature that a self-hosted store lacks; `suggestion` is the alternative."""

    usual_code = "UNSUPPORTED_001"


class MemoryNotFoundError(MemoryError, NotFound, ValueError):
    """No such memory exists."""

    usual_code = "MEM_404"


class AuthenticationError(MemoryError, Unauthorized):
    """The server refused the key."""

    usual_code = "AUTH_001"


class RateLimitError(MemoryError, RateLimited):
    """Too many requests; `debug_info["retry_after"]` says when to come back."""

    usual_code = "RATE_001"


class LLMError(MemoryError, ModelFailure):
    """The model that proposes facts failed. The messages are stored all the same."""

    usual_code = "LLM_001"


class NetworkError(MemoryError, StorageLost):
    """The server was not reached, or the connection broke."""

    usual_code = "NET_001"


def translated(error: MunimentError) -> MunimentError:
    """Convert an error of a connected store to the one mem0's client raises; return others unchanged."""
    match error:
        case MemoryError():
            return error
        case RateLimited() | QueueFull():
            return RateLimitError.of(error, retry_after=error.details.get("retry_after_s"))
        case Unauthorized() | Refused(status=403):
            return AuthenticationError.of(error)
        case StorageLost():
            return NetworkError.of(error)
        case StorageFailure() if type(error) is StorageFailure:  # raised by a connection: the server was not reached
            return NetworkError.of(error)
        case _:
            return error
