"""What stories have found, written out."""

from __future__ import annotations

from pathlib import Path

import muniment


def test_a_session_that_was_only_composed_for_is_exported_and_imported(tmp_path: Path) -> None:
    """As in the README: a packet for a new session comes before anything is said in it."""
    with muniment.open(tmp_path / "a.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe("user", "I moved to Berlin in May.")
        build = mem.run(user_id="ana", session_id="s2").compose("responder", query="Where does she live?")
        assert build.marks
        lines = list(mem.export())
        assert not any(mem.import_(lines).written.values())
    with muniment.open(tmp_path / "b.db") as mem:
        mem.import_(lines)
        assert mem.replay(build.id).packet_bytes == build.packet_bytes
        assert list(mem.export()) == lines
        assert mem.verify().ok
