"""The store's address from a file, for those who keep passwords out of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.errors import InvalidInput
from muniment.surfaces.settings import load_settings


def test_the_address_is_read_from_a_file_where_nothing_else_names_one(tmp_path: Path) -> None:
    file = tmp_path / "db"
    file.write_text("postgresql://muniment:secret@database/muniment\n")
    environ = {"MUNIMENT_DB_FILE": str(file)}
    assert load_settings({}, environ).db == "postgresql://muniment:secret@database/muniment"
    assert load_settings({}, environ | {"MUNIMENT_DB": "named.db"}).db == "named.db"
    assert load_settings({"db": "typed.db"}, environ).db == "typed.db"


def test_a_file_that_cannot_be_read_is_an_error_without_its_words(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(b"\xff secret")
    for name in ("missing", "db", "."):
        with pytest.raises(InvalidInput, match="MUNIMENT_DB_FILE") as caught:
            load_settings({}, {"MUNIMENT_DB_FILE": str(tmp_path / name)})
        assert "secret" not in str(caught.value)
