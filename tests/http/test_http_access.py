"""Keys: what they are, what they open, that nothing opens without them; nothing crosses a tenant or user (LG-02)."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from http_support import ANA, TENANT, Serve, address, bearer
from starlette.testclient import TestClient

import muniment
from effort import one_in
from muniment.core.outside.system import TickingClock
from muniment.errors import InvalidInput, NotFound
from muniment.handles.memory import Memory
from muniment.surfaces.cli.main import cli
from muniment.surfaces.http._calls import routes_of
from muniment.surfaces.http._keys import KeyFile, lifetime
from muniment.surfaces.http.serve import first_key, warnings_of
from muniment.surfaces.http.settings import ServerSettings, is_loopback, load_server_settings
from muniment.surfaces.operations.rows import OPERATIONS
from products import for_each

ROUTES = list(routes_of(OPERATIONS))
SCOPED = [route for route in ROUTES if route.level != "store"]
MARK = "zanzibar-7"


def name_of(route: Any) -> str:
    return f"{route.operation.method}-{route.template}"


def ask(client: TestClient, route: Any, token: str, **names: str) -> Any:
    method = route.operation.method
    sent = {"json": {}} if route.operation.takes_body and route.operation.takes == "json" else {}
    return client.request(method, address(route, **names), headers=bearer(token), **sent)


# -- without a key ------------------------------------------------------------------------------------


@for_each("route", ROUTES, ids=name_of)
def test_no_route_answers_without_a_key(walled: Any, route: Any) -> None:
    answer = walled.request(route.operation.method, address(route))
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that asks for keys, with what ana and bob of two tenants said; never limited in rate."""
    folder: Path = tmp_path_factory.mktemp("walled")
    from muniment.surfaces.http.app import create_app

    with muniment.open() as memory:
        fill(memory)
        settings = ServerSettings(
            auth="on",
            keys=str(folder / "keys.json"),
            research_dir=str(folder / "research"),
            guesses_per_minute=10**6,
            requests_per_minute=10**6,
        )
        with TestClient(create_app(memory, settings), base_url="http://localhost") as client:
            keys = KeyFile(folder / "keys.json", TickingClock())
            client.key_of = cache(lambda **scope: str(keys.create("test", **scope).token))  # type: ignore[attr-defined]
            yield client


def fill(memory: Memory) -> None:
    """Something of every kind for two users of two tenants, under ids that can be named."""
    for tenant in ("default", "acme"):
        for user in ("ana", "bob"):
            own = f"{tenant}_{user}"
            run = memory.run(user_id=user, tenant_id=tenant, session_id="s1", run_id=f"run_{own}", objective=MARK)
            said = run.observe("user", f"My city is {MARK}.", id=f"evt_{own}")
            run.remember("user.city", MARK, sources=[said.id])
            run.log.claim(f"The city is {MARK}.", evidence=[said.id], id=f"clm_{own}")
            run.patch(goal=MARK)
            run.compose("responder", query="city")
            memory.corpus("notes", tenant_id=tenant, user_id=user).add(f"Of {MARK}.", document_id="doc")
            run.log.compact()


@pytest.mark.req("LG-02")
@for_each("route", SCOPED, ids=name_of)
def test_a_key_of_one_tenant_never_sees_another(walled: Any, route: Any) -> None:
    token = walled.key_of(tenant="default", access="admin")
    for names in names_of_others("acme"):
        answer = ask(walled, route, token, tenant_id="acme", **names)
        assert answer.status_code == 403, answer.text
        assert MARK not in answer.text


@pytest.mark.req("LG-02")
@for_each("route", SCOPED, ids=name_of)
def test_ids_of_another_tenant_do_not_exist_in_ones_own(walled: Any, route: Any) -> None:
    """The address is the caller's own, the ids in it are another's."""
    if route.operation.call in ("forget", "forget_tenant", "import_"):
        return
    token = walled.key_of(tenant="empty", access="admin")
    for names in names_of_others("acme"):
        answer = ask(walled, route, token, tenant_id="empty", **names)
        assert MARK not in answer.text, answer.text
        assert answer.status_code < 500


@pytest.mark.req("LG-02")
@for_each("route", SCOPED, ids=name_of)
def test_a_key_of_one_user_never_sees_another(walled: Any, route: Any) -> None:
    token = walled.key_of(tenant="default", user="bob", access="admin")
    for names in names_of_others("default"):
        answer = ask(walled, route, token, tenant_id="default", user_id="ana", **names)
        assert answer.status_code == 403, answer.text
        assert MARK not in answer.text


@pytest.mark.req("LG-02")
@for_each("route", [each for each in SCOPED if each.level == "user"], ids=name_of)
def test_ids_of_another_user_do_not_exist_in_ones_own(walled: Any, route: Any) -> None:
    token = walled.key_of(tenant="default", access="admin")
    if route.operation.call in ("forget",):
        return
    for names in names_of_others("default"):
        answer = ask(walled, route, token, tenant_id="default", user_id="carl", **names)
        assert MARK not in answer.text, answer.text
        assert answer.status_code < 500


def names_of_others(tenant: str) -> list[dict[str, str]]:
    """Ids that exist in another's scope, under every name a path may have for them."""
    own = f"{tenant}_ana"
    with_build = {"a": own, "b": own}
    return [
        {
            "run_id": f"run_{own}",
            "event_id": f"evt_{own}",
            "claim_id": f"clm_{own}",
            "document_id": "doc",
            **with_build,
        },
        {"run_id": f"evt_{own}", "build_id": f"run_{own}", "fact_id": f"evt_{own}", "record_id": f"run_{own}"},
    ]


# -- what a key opens ---------------------------------------------------------------------------------


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("route", [each for each in routes_of(OPERATIONS) if each.level == "store"], ids=name_of)
def test_a_key_of_one_user_in_every_tenant_has_nothing_of_the_store(serve: Serve, keys: KeyFile, route: Any) -> None:
    client = serve(auth="on")
    token = keys.create("k", tenant="*", user="ana", access="admin").token
    answer = client.request(route.operation.method, address(route), headers=bearer(token))
    assert answer.status_code == (200 if route.operation.call in ("info", "policy") else 403)
    assert client.get(f"{ANA}/runs", headers=bearer(token)).status_code == 200


def test_access_is_read_write_or_admin(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    tokens = {access: keys.create("k", tenant="default", access=access).token for access in ("read", "write", "admin")}  # type: ignore[arg-type]
    write = {"role": "user", "content": "x"}
    for access, expected in (("read", 403), ("write", 201), ("admin", 201)):
        answer = client.post(f"{ANA}/runs/r1/events", json=write, headers=bearer(tokens[access]))
        assert answer.status_code == expected
    for access, expected in (("read", 403), ("write", 403), ("admin", 200)):
        assert client.post(f"{TENANT}/rebuild", headers=bearer(tokens[access])).status_code == expected
    for access in tokens:
        assert client.get(f"{ANA}/runs", headers=bearer(tokens[access])).status_code == 200
        assert client.get("/v1/key", headers=bearer(tokens[access])).json()["access"] == access
        assert client.get("/v1/tenants", headers=bearer(tokens[access])).status_code == 403


@pytest.mark.req("MP-08")
def test_levels_above_the_user_are_an_administrators_to_grant(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    fact = {"key": "office.city", "value": "Oslo", "sources": ["e1"], "scope_level": "tenant"}
    for access, expected in (("write", 403), ("admin", 201)):
        token = keys.create("k", tenant="default", access=access).token  # type: ignore[arg-type]
        said = {"role": "user", "content": "The office is in Oslo.", "id": "e1"}
        client.post(f"{ANA}/runs/r1/events", json=said, headers=bearer(token))
        asked = f"{ANA}/runs/r1/facts"
        assert client.post(asked, json=fact, headers=bearer(token)).status_code == 403
        assert client.post(f"{asked}?grants=tenant", json=fact, headers=bearer(token)).status_code == expected
        assert client.post(f"{ANA}/runs", json={"grants": ["tenant"]}, headers=bearer(token)).status_code == expected
    own = keys.create("k", tenant="default", user="ana", access="admin").token
    assert client.post(f"{ANA}/runs/r1/facts?grants=tenant", json=fact, headers=bearer(own)).status_code == 403


def test_keys_can_be_guessed_at_only_so_often(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on", guesses_per_minute=5)
    good = keys.create("k", tenant="default").token
    codes = [client.get("/v1/info", headers=bearer(f"mun_{n:012x}_{'x' * 43}")).status_code for n in range(8)]
    assert codes == [401] * 5 + [429] * 3
    late = client.get("/v1/info", headers=bearer("nothing"))
    assert int(late.headers["retry-after"]) >= 1
    assert client.get("/v1/info", headers=bearer(good)).status_code == 200, "who has a key is not made to wait"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer mun_", "Bearer mun_000000000000_" + "A" * 43, "bearer\tx"],
)
def test_headers_that_are_no_key(serve: Serve, keys: KeyFile, header: str) -> None:
    keys.create("k", tenant="*", access="admin")
    assert serve(auth="on").get("/v1/info", headers={"Authorization": header}).status_code == 401


def test_two_keys_are_one_too_many(serve: Serve, keys: KeyFile) -> None:
    good = keys.create("k", tenant="*", access="admin").token
    client = serve(auth="on")
    for tokens in ((good, "nothing"), ("nothing", good), (good, good)):
        sent = [("Authorization", f"Bearer {token}") for token in tokens]
        answer = client.get("/v1/info", headers=sent)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["code"]) == (400, "refused")


@pytest.mark.req("LG-02")
def test_only_who_keeps_the_server_is_told_where_research_files_lie(
    tmp_path: Path, keys: KeyFile, serve: Serve
) -> None:
    """In no answer and no error; the folder of a run is told below the server's own."""
    with muniment.open(tmp_path / "store.db") as memory:
        client = serve(memory, auth="on", research_dir=str(tmp_path / "hidden place"))
        tokens = {
            "all": keys.create("k", tenant="*", access="admin").token,
            "tenant": keys.create("k", tenant="default", access="admin").token,
            "user": keys.create("k", tenant="default", user="ana", access="write").token,
        }
        for name, token in tokens.items():
            asked = {"question": "What is a muniment?", "run_id": f"r-{name}"}
            started = client.post(f"{ANA}/research", json=asked, headers=bearer(token))
            assert started.status_code == 201, started.text
            place = f"{ANA}/research/r-{name}"
            told = [started, *(client.get(f"{place}{more}", headers=bearer(token)) for more in ("", "/status"))]
            (manifest,) = (tmp_path / "hidden place").glob(f"*/r-{name}/manifest.json")
            shutil.copytree(manifest.parent, manifest.parent.with_name(f"c-{name}"))
            refused = client.post(f"{ANA}/research", json=asked | {"run_id": f"c-{name}"}, headers=bearer(token))
            assert refused.status_code == 409, refused.text
            assert "holds the files of another run" in refused.text
            for answer in (*told, refused):
                assert ("hidden place" in answer.text) == (name == "all"), answer.text
            if name != "all":
                folders = [Path(answer.json()["directory"]) for answer in told]
                assert {folder.name for folder in folders} == {f"r-{name}"}
                assert not any(folder.is_absolute() for folder in folders)


def test_only_who_keeps_the_server_is_told_where_the_store_lies(
    tmp_path: Path, keys: KeyFile, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hidden place" / "store.db"
    path.parent.mkdir()
    with muniment.open(path) as memory:
        client = serve(memory, auth="on")
        tokens = {
            "all": keys.create("k", tenant="*", access="admin").token,
            "reader of all": keys.create("k", tenant="*", access="read").token,
            "tenant": keys.create("k", tenant="default", access="admin").token,
            "user": keys.create("k", tenant="default", user="ana", access="write").token,
        }
        told = {name: client.get("/v1/info", headers=bearer(token)) for name, token in tokens.items()}
        assert told["all"].json()["location"] == str(path)
        for name in ("reader of all", "tenant", "user"):
            assert "hidden place" not in told[name].text, name
            assert told[name].json()["location"] == "the store"
            assert told[name].headers["etag"] != told["all"].headers["etag"]
        path.rename(path.with_name("gone.db"))  # an error of the store names its place too
        lost = {
            name: client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"}, headers=bearer(token))
            for name, token in tokens.items()
            if name != "reader of all"
        }
        assert {answer.status_code for answer in lost.values()} == {503}
        assert [name for name, answer in lost.items() if "hidden place" in answer.text] == ["all"]
        path.with_name("gone.db").rename(path)


def test_a_key_is_limited_in_rate_and_bytes(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    token = keys.create("k", tenant="default", requests_per_minute=3, body_bytes_max=100).token
    search = client.post(f"{ANA}/search", json={"query": "x" * 200}, headers=bearer(token))
    assert search.json()["code"] == "too_large"
    codes = [client.get("/v1/info", headers=bearer(token)).status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429]
    other = keys.create("k", tenant="default").token
    assert client.get("/v1/info", headers=bearer(other)).status_code == 200


# -- the life of a key --------------------------------------------------------------------------------


def test_secrets_are_kept_as_hashes_for_their_owner_alone(tmp_path: Path, keys: KeyFile) -> None:
    made = keys.create("ci", tenant="acme")
    held = (tmp_path / "keys.json").read_text()
    assert made.token.split("_", 2)[2] not in held
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600
    assert "hash" not in json.dumps(made.key.public_fields())
    assert keys.find(made.token) == made.key


def test_rotation_overlaps_and_revocation_holds_at_once(tmp_path: Path) -> None:
    clock = TickingClock()
    keys, other = KeyFile(tmp_path / "k.json", clock), KeyFile(tmp_path / "k.json", clock)
    first = keys.create("ci", tenant="acme")
    assert other.find(first.token) is not None
    second = keys.rotate(first.key.key_id, timedelta(minutes=1))
    assert second.key.key_id == first.key.key_id
    assert other.find(first.token) is not None
    assert other.find(second.token) is not None
    for _ in range(70):
        clock()
    assert other.find(first.token) is None
    assert other.find(second.token) is not None
    keys.revoke(first.key.key_id)
    assert other.find(second.token) is None
    with pytest.raises(InvalidInput):
        keys.rotate(first.key.key_id, timedelta(minutes=1))
    with pytest.raises(NotFound):
        keys.revoke("nobody")
    short = keys.create("ci", tenant="acme", lasts=timedelta(seconds=30))
    assert other.find(short.token) is not None
    for _ in range(40):
        clock()
    assert other.find(short.token) is None


def test_a_forget_takes_no_key_and_an_export_shows_none(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    token = keys.create("k", tenant="default", access="admin").token
    client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"}, headers=bearer(token))
    assert token.split("_", 2)[2] not in client.get(f"{TENANT}/export", headers=bearer(token)).text
    assert client.delete(TENANT, headers=bearer(token)).status_code == 200
    assert client.get(f"{ANA}/runs", headers=bearer(token)).json() == {"items": [], "count": 0}


def test_the_command_makes_lists_rotates_and_revokes(tmp_path: Path, serve: Serve) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["store", "keys", *arguments, "--keys", str(tmp_path / "keys.json")])

    token = run("create", "ci", "--tenant", "default", "--access", "read", "--expires", "90d").stdout.strip()
    client = serve(auth="on")
    assert client.get("/v1/info", headers=bearer(token)).status_code == 200
    (listed,) = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert (listed["name"], listed["tenant"], listed["access"]) == ("ci", "default", "read")
    renewed = json.loads(run("rotate", listed["key_id"], "--overlap", "0s", "--json").stdout)["token"]
    assert client.get("/v1/info", headers=bearer(token)).status_code == 401
    assert client.get("/v1/info", headers=bearer(renewed)).status_code == 200
    assert "is revoked" in run("revoke", listed["key_id"]).stdout
    assert client.get("/v1/info", headers=bearer(renewed)).status_code == 401
    assert "revoked" in run("list").stdout
    with pytest.raises(InvalidInput):
        lifetime("soon", "$.expires")


# -- where keys are asked for -------------------------------------------------------------------------


@for_each(
    ("host", "auth", "asks"),
    [("127.0.0.1", "auto", False), ("::1", "auto", False), ("localhost", "auto", False), ("0.0.0.0", "auto", True),
     ("10.0.0.1", "auto", True), ("example.org", "auto", True), ("", "auto", True), ("127.0.0.1", "on", True),
     ("0.0.0.0", "off", False)],
)  # fmt: skip
def test_keys_are_asked_for_where_others_can_reach_it(host: str, auth: str, asks: bool) -> None:
    assert ServerSettings(host=host, auth=auth).asks_for_keys is asks


def test_a_server_is_started_with_keys_and_an_open_one_says_so(tmp_path: Path, keys: KeyFile) -> None:
    assert load_server_settings({}, {}).asks_for_keys
    assert not load_server_settings({"auth": "off"}, {}).asks_for_keys
    assert not load_server_settings({"auth": "auto"}, {}).asks_for_keys
    assert load_server_settings({"auth": "auto", "host": "0.0.0.0"}, {}).asks_for_keys
    assert "everyone on its networks" in warnings_of(ServerSettings(host="0.0.0.0", auth="off"))[0]
    assert "every program and user of this machine" in warnings_of(ServerSettings(auth="off"))[0]
    assert warnings_of(ServerSettings(auth="on")) == []
    token = first_key(keys)
    assert token is not None
    assert keys.find(token) is not None
    assert first_key(keys) is None, "only where there is none"
    assert keys.path.stat().st_mode & 0o777 == 0o600
    assert not is_loopback("127.0.0.1.evil.example")


def test_settings_come_from_arguments_environment_and_file(tmp_path: Path) -> None:
    config = tmp_path / "muniment.toml"
    config.write_text('[server]\nport = 1\nhost = "::1"\nthreads = 3\n')
    env = {"MUNIMENT_CONFIG": str(config), "MUNIMENT_PORT": "2", "MUNIMENT_HOST": "localhost"}
    settings = load_server_settings({"port": 3, "host": None}, env)
    assert (settings.port, settings.host, settings.threads) == (3, "localhost", 3)
    for bad in ("[server]\nport = 'x'", "[server]\nnothing = 1", "[server]\nauth = 'maybe'", "server = 1",
                "[server]\ntls_cert = 'a'", "[server]\nthreads = 0"):  # fmt: skip
        config.write_text(bad)
        with pytest.raises(InvalidInput):
            load_server_settings({}, {"MUNIMENT_CONFIG": str(config)})


def test_other_sites_cannot_ask_through_a_browser(client: TestClient) -> None:
    event = {"role": "user", "content": "x"}
    elsewhere = [{"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}]
    for headers in (*elsewhere, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        answer = client.post(f"{ANA}/runs/r1/events", json=event, headers=headers)
        assert answer.json()["code"] == "forbidden"
        assert not any(name.startswith("access-control") for name in answer.headers)
    simple = client.post(f"{ANA}/runs/r1/events", content=json.dumps(event), headers={"Content-Type": "text/plain"})
    assert simple.status_code == 415
    assert client.options(f"{ANA}/runs").status_code == 405
    same = client.post(f"{ANA}/runs/r1/events", json=event, headers={"Origin": "http://localhost"})
    assert same.status_code == 201


def test_what_a_proxy_passes_on_is_not_of_this_machine(client: TestClient) -> None:
    for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Via"):
        answer = client.get(f"{ANA}/runs", headers={name: "203.0.113.9", "Host": "127.0.0.1:8765"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert "--auth on" in answer.json()["hint"]
    assert client.get(f"{ANA}/runs", headers={"Host": "127.0.0.1:8765"}).status_code == 200


# -- ids and queries that try -------------------------------------------------------------------------

TRICKS = [
    "..",
    ".",
    "../../etc/passwd",
    "a/b",
    "a%2Fb",
    "' OR 1=1 --",
    "*",
    "a\x01b",
    "x" * 300,
    "%",
    "ana\u2028",
    "\u202e",
]
NAMED = [
    (route, name)
    for route in ROUTES
    if route.operation.method == "GET" and route.operation.media != "text/event-stream"
    for name in route.operation.named_in(route.template)
]


@pytest.mark.parametrize("trick", TRICKS)
def test_ids_are_names_and_nothing_else(serve: Serve, tmp_path: Path, trick: str) -> None:
    client = serve()
    before = set(tmp_path.rglob("*"))
    for route, name in one_in(3, NAMED, start=TRICKS.index(trick)):
        answer = client.get(address(route, **{name: trick}))
        assert answer.status_code in (200, 400, 403, 404, 405, 409, 422), (route.template, answer.text)
    assert set(tmp_path.rglob("*")) == before
    started = client.post(f"{ANA}/research", json={"question": "What is it?", "run_id": trick})
    assert started.status_code in (201, 422)
    outside = [
        path for path in tmp_path.rglob("*") if path.is_file() and "research" not in path.parts[len(tmp_path.parts)]
    ]
    assert outside == [path for path in before if path.is_file()]


@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE entries; --",
        '" OR "',
        "NEAR(a b)",
        "a* AND NOT b",
        "col:x",
        "^",
        "\x00",
        "%' ESCAPE '\\",
        "(((",
        "😀",
    ],
)
def test_queries_are_words_and_nothing_else(client: TestClient, query: str) -> None:
    client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "I live in Oslo."})
    for path in ("search", "why", "compose", "corpora/notes/search"):
        body = {"query": query} if path != "why" else {"text": query}
        body |= {"purpose": "responder"} if path == "compose" else {}
        assert client.post(f"{ANA}/{path}", json=body).status_code in (200, 422)
    assert len(client.get(f"{ANA}/events").json()["items"]) == 2
