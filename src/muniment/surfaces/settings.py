"""Settings, in one order everywhere: argument > `MUNIMENT_*` environment > `muniment.toml` > default.

    MUNIMENT_DB, MUNIMENT_TENANT, MUNIMENT_USER, MUNIMENT_AGENT, MUNIMENT_DURABILITY, MUNIMENT_EMBEDDER,
    MUNIMENT_TOKENS, MUNIMENT_TIMEZONE, MUNIMENT_GRADER, MUNIMENT_EXTRACT_MODEL, MUNIMENT_LESSONS, MUNIMENT_PROOF_KEY,
    MUNIMENT_REPOSITORY, MUNIMENT_BRANCHES, MUNIMENT_DIRECTORY,
    MUNIMENT_CONFIG (another toml); MUNIMENT_DB_FILE names a file that holds the value of MUNIMENT_DB

`muniment.toml` is read in the working directory and, as a fallback, in `~/.muniment`. Anybody may have written the
first, so it may set only what `FOLDER_SETTINGS` lists, and it is not read when a host starts us (MUNIMENT_REPOSITORY is
set). MUNIMENT_CONFIG, or `--config`, names one file in place of both, which may set everything.

Its `[policy]` table is the policy, its `[server]` table the settings of `muniment serve` (`surfaces.http.settings`),
`[mcp]` those of `muniment mcp`, `[proxy]` those of `muniment proxy`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from muniment.errors import InvalidInput
from muniment.surfaces.given_names import checked_name

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = [
    "FOLDER_SETTINGS",
    "NAMES",
    "Settings",
    "config_files",
    "load_settings",
    "open_store",
    "read_config",
    "settle_table",
    "shown_db",
]

NAMES: Mapping[str, str] = {
    "db": "muniment.db",
    "tenant": "default",
    "user": "",
    "agent": "agent",
    "durability": "normal",
    "embedder": "none",
    "tokens": "auto",
    "timezone": "none",
    "grader": "none",
    "grader_decides": "never",
    "extract_model": "none",
    "lessons": "none",
    "proof_key": "none",
    "repository": "none",
    "branches": "any",
    "directory": "",
}
"""Every setting and its default."""
_FILE = "muniment.toml"
_TABLES = ("policy", "server", "mcp", "proxy")


class Harmless(NamedTuple):
    """The permitted values of a setting in the working directory's `muniment.toml`."""

    values: str = "anything"
    allows: Callable[[Any], bool] = lambda _: True


def _is_below(db: Any) -> bool:
    """True for a file in or below the working directory, by its name alone."""
    if not isinstance(db, str) or db == ":memory:":
        return True
    return not (":" in db or db.startswith(("/", "\\", "~")) or ".." in re.split(r"[\\/]", db))


def _one_of(*values: str) -> Harmless:
    return Harmless(" or ".join(f"`{each}`" for each in values), lambda value: value in values)


def _without(*names: str) -> Harmless:
    """A table without the settings that could make a model believe something false."""
    return Harmless(f"a table without {' and '.join(names)}", lambda table: not set(names) & set(table))


FOLDER_SETTINGS: Mapping[str, Harmless] = {
    "db": Harmless("a file in that folder", _is_below),
    "tenant": Harmless(),
    "user": Harmless(),
    "agent": Harmless(),
    "durability": Harmless(),
    "embedder": _one_of("none", "hash", "e5-small", "multilingual-e5-small"),
    "tokens": Harmless(),
    "timezone": Harmless(),
    "mcp.task_type": Harmless(),
    "mcp.forget": _one_of("off"),
    "mcp.writes": _one_of("off"),
    "mcp.profile": Harmless(),
    "policy.policy_id": Harmless(),
    "policy.schema_version": Harmless(),
    "policy.memory": Harmless(),
    "policy.recall": Harmless(),
    "policy.compose": _without("quote_instruction_like", "allow_validated_insights_in_responder"),
    "policy.corpus": Harmless(),
    "policy.compaction": Harmless(),
    "policy.verify": Harmless(),
    "policy.research": Harmless(),
    "policy.learn": _without("judges"),
    "policy.rollout": Harmless(),
    "policy.route": Harmless(),
    "policy.flow": Harmless(),
    "policy.tree": Harmless(),
    "policy.patterning": Harmless(),
}
"""The settings permitted in the working directory's `muniment.toml`, since a cloned repository may contain one. A
setting that is not listed here is refused there. Never list settings for where content, keys or requests go, where a
server listens and whom it admits, which files are read or written elsewhere, or what guards secrets or promotion.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    db: str
    """The store: a SQLite file, `:memory:`, or a `postgresql://` address (`?schema=`, `?pool_size=`)"""
    tenant: str
    """The tenant."""
    user: str
    """The user whose memory a command uses, if it concerns one user."""
    agent: str
    """The agent that runs belong to."""
    durability: str
    """`normal` survives a crash of the process, `full` a loss of power, `replicated` that of a PostgreSQL server."""
    embedder: str
    """Search by meaning: `none`, `e5-small`, `multilingual-e5-small`, `onnx:<folder>`, `openai:<base_url>#<model>`."""
    tokens: str
    """The token counter: `auto` is exact where a tokenizer is installed."""
    timezone: str
    """The time zone that sets the day of times without a UTC offset: `Europe/Berlin`; `none` is UTC."""
    grader: str
    """A model that judges every fact of a verification: `none`, `openai:<base_url>#<model>`."""
    grader_decides: str
    """When the grader's verdict counts: `never` (it reports disagreement), `unknown` (where the rules cannot decide),
    `always`.
    """
    extract_model: str
    """A model that reads users' turns (`muniment extract`): `none` (rules alone), `openai:<base_url>#<model>`."""
    lessons: str
    """A model that writes lessons from judged runs: `none`, `openai:<base_url>#<model>`."""
    proof_key: str
    """The location of the key for proofs of builds and receipts: `none`, `file:<path>`, `env:<NAME>`."""
    repository: str
    """Whether each repository has its own memory, as a tenant below `tenant` unless one is given as an argument:
    `none`, `checkout` (a checkout and its worktrees), `remote` (all checkouts of one remote).
    """
    branches: str
    """The branches that share it: `any`, `same` (each its own), or a list such as `main,release/*`."""
    directory: str
    """The directory whose repository is meant, if not the working directory."""
    policy: Mapping[str, Any]
    """The `[policy]` table: differences from the default policy."""

    @property
    def shown_db(self) -> str:
        """The store's address for printing or logging."""
        return shown_db(self.db)


_OPTION = re.compile(r"(?<=[?&])([^=&?]*)=([^&]*)")
_SECRET_OPTIONS = frozenset(
    ("password", "sslpassword", "passfile", "sslkey", "oauth_client_secret", "scram_client_key", "scram_server_key")
)
_HIDDEN = "…"


def shown_db(db: str) -> str:
    """The address of a store without a password, in any part and encoding.

    A password may be malformed, with characters that would end one: everything up to the last @ counts as the password.
    """
    scheme, slashes, rest = db.partition("://")
    return f"{scheme}{slashes}{_shown_place(rest)}" if slashes else db


def _shown_place(place: str) -> str:
    login, at, rest = _OPTION.sub(_shown_option, place).rpartition("@")
    return f"{login.split(':', 1)[0]}{at}{rest}"


def _shown_option(found: re.Match[str]) -> str:
    """Hide an option of an address. A server decodes its name first, and a replica is an address of its own."""
    name = unquote(found[1]).strip().lower()
    if name in _SECRET_OPTIONS:
        return f"{found[1]}={_HIDDEN}"
    if name != "replica":
        return found[0]
    replica = unquote(found[2])
    shown = shown_db(replica) if "://" in replica else _shown_place(replica)
    return found[0] if shown == replica else f"{found[1]}={quote(shown, safe='').replace(quote(_HIDDEN), _HIDDEN)}"


def load_settings(given: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> Settings:
    """Settle every setting; `given` are the arguments of the command line, None if not given."""
    env = os.environ if environ is None else environ
    config = read_config(env)
    values: dict[str, str] = {}
    for name, default in NAMES.items():
        value = given.get(name)
        if value is None:
            value = env.get(f"MUNIMENT_{name.upper()}")
        if value is None and name == "db":
            value = _db_in_file(env)
        if value is None:
            value = config.get(name, default)
        if not isinstance(value, str):
            raise InvalidInput(f"the setting {name!r} should be a string", path=f"$.{name}")
        values[name] = value
    values["db"] = _at_home(checked_name(values["db"], "db"))
    if values["repository"] != "none":
        values["user"] = values["user"] or getuser()
        if given.get("tenant") is None:
            values["tenant"] = _repository_tenant(values, env)
    policy = config.get("policy", {})
    if not isinstance(policy, dict):
        raise InvalidInput("[policy] should be a table", path="$.policy")
    return Settings(policy=policy, **values)


def _at_home(db: str) -> str:
    """Expand a leading `~/`: a configuration file has no shell to do it."""
    return str(Path(db).expanduser()) if db.startswith("~/") else db


def _repository_tenant(values: Mapping[str, str], env: Mapping[str, str]) -> str:
    """The tenant of the selected repository. A host may start a server anywhere: the home directory and the root are no
    project unless named, else one repository's content would be shown in another.
    """
    from muniment.surfaces.hosts.repository import find_repository, scoped_tenant

    named = values["directory"] or env.get("CLAUDE_PROJECT_DIR", "")
    directory = Path(named or ".").resolve()
    is_anywhere = directory in (Path.home(), Path(directory.anchor))
    if not named and is_anywhere and find_repository(directory).git_dir is None:
        raise InvalidInput(
            "which project is meant is not said", path="$.directory", hint="set MUNIMENT_DIRECTORY to its directory"
        )
    return scoped_tenant(values["tenant"], directory, kind=values["repository"], branches=values["branches"])


def _db_in_file(env: Mapping[str, str]) -> str | None:
    """The store's address from a file that only its owner can read, since it may hold a password: MUNIMENT_DB_FILE."""
    named = env.get("MUNIMENT_DB_FILE")
    if not named:
        return None
    try:
        return Path(named).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"MUNIMENT_DB_FILE cannot be read: {type(error).__name__}", path="$.db") from None


def config_files(env: Mapping[str, str]) -> list[Path]:
    """The places searched for a configuration, existing or not; the first that sets something wins."""
    named = env.get("MUNIMENT_CONFIG")
    if named:
        return [Path(named)]
    from muniment.core.outside.pending import home_folder

    own, here = home_folder() / _FILE, Path(_FILE)
    is_started_by_host = "MUNIMENT_REPOSITORY" in env  # in any repository
    return [own] if is_started_by_host or own.resolve() == here.resolve() else [here, own]


def read_config(env: Mapping[str, str]) -> dict[str, Any]:
    """The merged configuration files. `InvalidInput` if that of the working directory sets too much."""
    first, *others = config_files(env)
    if env.get("MUNIMENT_CONFIG") and not first.is_file():
        raise InvalidInput(f"no configuration file at {first}", hint="MUNIMENT_CONFIG or --config names it")
    config = _read_file(first)
    if others:
        _check_harmless(config, first)
    for each in others:
        config = _merged(_read_file(each), config)
    return config


def _read_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", hint="it should be TOML in UTF-8") from None
    unknown = sorted(config.keys() - NAMES.keys() - set(_TABLES))
    if unknown:
        raise InvalidInput(
            f"{path} has unknown settings: {', '.join(unknown)}",
            hint=f"known are {', '.join([*NAMES, *_TABLES])}",
        )
    return config


def _merged(config: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge both, table by table; `over` takes precedence."""
    pairs = {
        name: _merged(config[name], value) if isinstance(value, dict) and isinstance(config.get(name), dict) else value
        for name, value in over.items()
    }
    return {**config, **pairs}


def _check_harmless(config: dict[str, Any], path: Path) -> None:
    """Refuse settings beyond `FOLDER_SETTINGS` in a file that anybody may have written."""
    refused = [(name, allowed) for name, value, allowed in _dotted(config) if not (allowed and allowed.allows(value))]
    if refused:
        name, allowed = refused[0]
        names = ", ".join(each for each, _ in refused)
        more = "" if allowed is None else f" (there {name} may be {allowed.values})"
        raise InvalidInput(
            f"{path.resolve()} may not set {names}: a file in the working directory may come from anybody{more}",
            path=f"$.{name}",
            hint=f"move it to ~/.muniment/{_FILE} or pass --config FILE",
        )


def _dotted(config: dict[str, Any]) -> Iterator[tuple[str, Any, Harmless | None]]:
    """Every setting by its full name, its value, and its permitted values."""
    for name, value in config.items():
        if name in _TABLES and isinstance(value, dict):
            for key, inner in value.items():
                yield f"{name}.{key}", inner, FOLDER_SETTINGS.get(f"{name}.{key}")
        else:
            yield name, value, FOLDER_SETTINGS.get(name)


def settle_table(
    table: str, prefix: str, names: Iterable[str], given: Mapping[str, Any], environ: Mapping[str, str] | None
) -> dict[str, Any]:
    """The values of these settings from arguments, the environment (`prefix` and the name) or a table of
    `muniment.toml`.
    """
    env = os.environ if environ is None else environ
    held = read_config(env).get(table, {})
    if not isinstance(held, dict):
        raise InvalidInput(f"[{table}] should be a table", path=f"$.{table}")
    known = tuple(names)
    unknown = sorted(held.keys() - set(known))
    if unknown:
        raise InvalidInput(
            f"[{table}] has no {unknown[0]!r:.40}", path=f"$.{table}", hint=f"known are {', '.join(known)}"
        )
    said = {name: (given.get(name), env.get(f"{prefix}{name.upper()}"), held.get(name)) for name in known}
    first = {name: next((each for each in told if each is not None), None) for name, told in said.items()}
    return {name: value for name, value in first.items() if value is not None}


def open_store(settings: Settings, *, must_exist: bool = False, read_only: bool = False) -> Memory:
    """Open the store that the settings name. With `must_exist`, as for a command that only reads, none is created."""
    from muniment.handles.memory import open as open_memory
    from muniment.store.engines.opening import durability_named

    is_file = "://" not in settings.db and settings.db != ":memory:"
    if must_exist and is_file and not Path(settings.db).exists():
        raise InvalidInput(f"there is no store at {settings.db}", path="$.db", hint="name it with --db or MUNIMENT_DB")
    memory = open_memory(
        settings.db,
        policy=settings.policy or None,
        durability=durability_named(settings.durability),
        embedder=settings.embedder,
        tokens=settings.tokens,
        timezone=None if settings.timezone == "none" else settings.timezone,
        grader=_grader(settings),
        lessons=_model(settings.lessons, "$.lessons"),
        proof_key=settings.proof_key,
        read_only=read_only,
    )
    memory._ctx.extract_model = _model(settings.extract_model, "$.model")  # not used in the background
    return memory


def _grader(settings: Settings) -> Any:
    """The grader in the settings, which contacts nothing before it is used."""
    if settings.grader == "none":
        return None
    from muniment.verify.graders import load_grading

    return load_grading(settings.grader, settings.grader_decides, api_key=os.environ.get("OPENAI_API_KEY"))


def _model(name: str, path: str) -> str | None:
    """The checked address of a model in the settings; nothing is contacted before it is used."""
    if name == "none":
        return None
    from muniment.memory.outside.models import named_model

    named_model(name, path)
    return name
