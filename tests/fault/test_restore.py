"""A base backup and an archive of the log, restored to a point in time by PostgreSQL's own commands, and verified.

What was forgotten after that point is back, as `docs/guides/replicas.md` says; a forget done again takes it.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import muniment
from muniment.testing.postgres import PostgresProcess, Servers

pytestmark = pytest.mark.req("LG-11")


def archived(server: PostgresProcess) -> None:
    """Have the log so far archived, and wait for it."""
    ((segment,),) = server.execute("SELECT pg_walfile_name(pg_switch_wal())")
    deadline = time.monotonic() + 120
    while not server.execute("SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= %s", segment):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def restore(cluster: Servers, backup: Path, archive: Path, target: dict[str, str]) -> PostgresProcess:
    """A new server out of the backup: its files copied, the log replayed as far as `target` says, then promoted."""
    cluster.run("pg_verifybackup", backup)
    folder = cluster.new_folder("restored")
    cluster.copy(backup, folder)
    (folder / "recovery.signal").touch()
    (folder / "recovery.signal").chmod(0o666)
    server = cluster.restored(
        folder,
        restore_command=f"cp {archive}/%f %p",
        recovery_target_action="promote",
        **target,
    )
    deadline = time.monotonic() + 60
    while server.execute("SELECT pg_is_in_recovery()") == [(True,)]:
        assert time.monotonic() < deadline, server.log[-2000:]
        time.sleep(0.05)
    return server


@pytest.mark.soak
@pytest.mark.slow
def test_a_base_backup_is_restored_to_a_point_in_time(cluster: Servers) -> None:
    archive = cluster.new_folder("archive")
    server = cluster.primary(archive_mode="on", archive_command=f"cp %p {archive}/%f")
    with muniment.open(server.dsn) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        kept = run.observe("user", "I moved to Berlin in May.")
        backup = cluster.new_folder("backup")
        cluster.base_backup(server, backup)
        said = run.observe("user", "I am allergic to hazelnuts.")
        run.extract()
        ((moment,),) = server.execute("SELECT now()::text")
        server.execute("SELECT pg_create_restore_point('before the forget')")
        time.sleep(0.01)
        receipt = mem.forget(event=said.id)
        assert "its log is archived" in receipt.note
        late = run.observe("user", "I like tea.")
        assert mem.verify().ok
    archived(server)
    server.kill()

    for target in (
        {"recovery_target_name": "before the forget"},
        {"recovery_target_time": moment},
        {"recovery_target_timeline": "1"},
    ):
        restored = restore(cluster, backup, archive, target)
        with muniment.open(restored.dsn) as mem:
            assert mem.verify().ok
            there = {entry.id: entry.content for entry in mem.ledger.entries(user_id="ana")}
            assert there[kept.id] == "I moved to Berlin in May."
            if "recovery_target_timeline" in target:  # all of it, the forget as well
                assert there[said.id] is None
                assert there[late.id] == "I like tea."
            else:  # what was forgotten later is back, and goes by being forgotten again
                assert there[said.id] == "I am allergic to hazelnuts."
                assert late.id not in there
                for erased in receipt.erased:
                    if erased.kind == "event":
                        mem.forget(event=erased.id)
                assert "hazelnuts" not in str([entry.content for entry in mem.ledger.entries(user_id="ana")])
                assert not any("hazelnuts" in hit.text for hit in mem.run(user_id="ana").search("hazelnuts"))
            mem.run(user_id="ana", session_id="s1").observe("user", "It goes on.")
            assert mem.verify().ok
        restored.stop()
