"""The memory tool's commands: one suite over ours and the SDK's own tool on files; and what must not get out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from effort import examples
from muniment.errors import InvalidInput
from muniment.integrations.anthropic import MemoryFiles

NEEDS = "the anthropic extra is not installed: pip install 'muniment[anthropic]'"


@pytest.fixture(params=["muniment-memory", "muniment-sqlite", "anthropic-files"])
def tool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    own = pytest.importorskip("anthropic.lib.tools._beta_builtin_memory_tool", reason=NEEDS)
    if request.param == "anthropic-files":
        yield own.BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
        return
    from muniment.integrations.anthropic import MunimentMemoryTool

    with muniment.open(":memory:" if request.param == "muniment-memory" else tmp_path / "a.db") as mem:
        yield MunimentMemoryTool(mem, user_id="ana")


def do(tool: Any, command: str, **given: Any) -> str:
    return str(tool.call({"command": command, **given}))


def refusal(tool: Any, command: str, **given: Any) -> str:
    from anthropic.lib.tools import ToolError

    with pytest.raises(ToolError) as caught:
        do(tool, command, **given)
    return str(caught.value)


NOTES = "first line\nsecond line\nthird line\nfourth line\nfifth line\nsixth line\n"


@pytest.fixture
def notes(tool: Any) -> Any:
    do(tool, "create", path="/memories/notes.txt", file_text=NOTES)
    return tool


def test_the_tool_says_what_it_is(tool: Any) -> None:
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_an_empty_directory(tool: Any) -> None:
    shown = do(tool, "view", path="/memories").splitlines()
    assert shown[0] == "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert [line.partition("\t")[2] for line in shown[1:]] == ["/memories"]


def test_creating_and_viewing(notes: Any) -> None:
    assert do(notes, "create", path="/memories/b.txt", file_text="x") == "File created successfully at: /memories/b.txt"
    assert do(notes, "view", path="/memories/b.txt") == (
        "Here's the content of /memories/b.txt with line numbers:\n     1\tx"
    )
    assert do(notes, "view", path="/memories/notes.txt").splitlines()[1:] == [
        *(f"     {number}\t{line}" for number, line in enumerate(NOTES.splitlines(), 1)),
        "     7\t",
    ]


@pytest.mark.parametrize(
    ("view_range", "numbers"), [([2, 3], [2, 3]), ([5, -1], [5, 6, 7]), ([1, 1], [1]), ([0, 2], [1, 2]), ([9, 12], [])]
)
def test_viewing_a_part(notes: Any, view_range: list[int], numbers: list[int]) -> None:
    shown = do(notes, "view", path="/memories/notes.txt", view_range=view_range)
    assert [int(line.split("\t")[0]) for line in shown.splitlines()[1:]] == numbers


def test_a_directory_is_listed_two_levels_deep(tool: Any) -> None:
    for path, size in (("b.txt", 3), ("a/one.md", 2048), ("a/sub/deep.md", 1), ("a/.hidden", 1), (".git/x", 1)):
        do(tool, "create", path=f"/memories/{path}", file_text="x" * size)
    lines = do(tool, "view", path="/memories").splitlines()[1:]
    listed = [line.split("\t") for line in lines]
    assert [path for _, path in listed] == [
        "/memories",
        "/memories/a/",
        "/memories/a/one.md",
        "/memories/a/sub/",
        "/memories/b.txt",
    ]
    assert [size for size, path in listed if not path.endswith(("/", "memories"))] == ["2K", "3B"]
    assert [line.split("\t")[1] for line in do(tool, "view", path="/memories/a").splitlines()[1:]] == [
        "/memories/a",
        "/memories/a/one.md",
        "/memories/a/sub/",
        "/memories/a/sub/deep.md",
    ]


def test_replacing(notes: Any) -> None:
    shown = do(notes, "str_replace", path="/memories/notes.txt", old_str="third", new_str="3rd\nand")
    assert shown == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tfirst line\n     2\tsecond line\n     3\t3rd\n     4\tand line\n     5\tfourth line"
    )
    assert "3rd" in do(notes, "view", path="/memories/notes.txt")
    assert refusal(notes, "str_replace", path="/memories/notes.txt", old_str="line", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `line` in lines: 1, 2, 4, 5, 6, 7. "
        "Please ensure it is unique"
    )
    assert refusal(notes, "str_replace", path="/memories/notes.txt", old_str="none", new_str="x") == (
        "No replacement was performed, old_str `none` did not appear verbatim in /memories/notes.txt."
    )


@pytest.mark.parametrize(("at", "expected"), [(0, "new\na\nb\n"), (1, "a\nnew\nb\n"), (2, "a\nb\nnew\n")])
@pytest.mark.parametrize("text", ["a\nb\n", "a\nb"])
def test_inserting(tool: Any, at: int, expected: str, text: str) -> None:
    do(tool, "create", path="/memories/f", file_text=text)
    assert do(tool, "insert", path="/memories/f", insert_line=at, insert_text="new\n") == (
        "The file /memories/f has been edited."
    )
    shown = do(tool, "view", path="/memories/f").split("\n")[1:]
    assert [line.split("\t")[1] for line in shown] == expected.split("\n")


def test_inserting_nowhere(notes: Any) -> None:
    for at in (-1, 7):
        assert refusal(notes, "insert", path="/memories/notes.txt", insert_line=at, insert_text="x") == (
            f"Invalid `insert_line` parameter: {at}. It should be within the range [0, 6]."
        )


def test_deleting(notes: Any) -> None:
    do(notes, "create", path="/memories/d/a", file_text="1")
    do(notes, "create", path="/memories/d/e/b", file_text="2")
    assert do(notes, "delete", path="/memories/notes.txt") == "Successfully deleted /memories/notes.txt"
    assert do(notes, "delete", path="/memories/d") == "Successfully deleted /memories/d"
    assert len(do(notes, "view", path="/memories").splitlines()) == 2
    assert refusal(notes, "delete", path="/memories/d") == "The path /memories/d does not exist"
    assert refusal(notes, "delete", path="/memories") == "Cannot delete the /memories directory itself"
    do(notes, "create", path="/memories/notes.txt", file_text="again")
    assert do(notes, "view", path="/memories/notes.txt").endswith("\tagain")


def test_renaming(notes: Any) -> None:
    do(notes, "create", path="/memories/d/a", file_text="1")
    do(notes, "create", path="/memories/d/e/b", file_text="2")
    said = do(notes, "rename", old_path="/memories/d", new_path="/memories/x/y")
    assert said == "Successfully renamed /memories/d to /memories/x/y"
    assert do(notes, "view", path="/memories/x/y/e/b").endswith("\t2")
    assert "does not exist" in refusal(notes, "view", path="/memories/d/a")
    do(notes, "rename", old_path="/memories/notes.txt", new_path="/memories/n.txt")
    assert do(notes, "view", path="/memories/n.txt").splitlines()[1] == "     1\tfirst line"
    taken = refusal(notes, "rename", old_path="/memories/n.txt", new_path="/memories/x")
    assert taken == "The destination /memories/x already exists"
    gone = refusal(notes, "rename", old_path="/memories/none", new_path="/memories/z")
    assert gone == "The path /memories/none does not exist"
    root = refusal(notes, "rename", old_path="/memories", new_path="/memories/z")
    assert root == "Cannot rename the /memories directory itself"


def test_what_is_there_is_not_made_again(notes: Any) -> None:
    said = refusal(notes, "create", path="/memories/notes.txt", file_text="x")
    assert said == "File /memories/notes.txt already exists"


@pytest.mark.parametrize("command", ["view", "str_replace", "insert"])
def test_what_is_not_there(tool: Any, command: str) -> None:
    more = {"str_replace": {"old_str": "a", "new_str": "b"}, "insert": {"insert_line": 0, "insert_text": "a"}}
    said = refusal(tool, command, path="/memories/none", **more.get(command, {}))
    assert said == "The path /memories/none does not exist. Please provide a valid path."


def test_directories_are_not_files(tool: Any) -> None:
    do(tool, "create", path="/memories/d/a", file_text="1")
    assert refusal(tool, "insert", path="/memories/d", insert_line=0, insert_text="x") == (
        "The path /memories/d is not a file."
    )


ESCAPES = ["/etc/passwd", "/memories/../etc/passwd", "/memories/a/../../b", "memories/a", "/memory", "", "/", "../x"]
OURS_TOO = [
    "/memoriesfoo",
    "/memories/..",
    "/memories/./a",
    "/memories/%2e%2e/etc",
    "/memories/..%2Fetc",
    "/memories/a\\..\\b",
    "/memories/a\x00b",
    "/memories/ .. /x",
    "/memories/\n",
]


@pytest.mark.soak
@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert", "delete"])
def test_nothing_leads_out(tool: Any, command: str, path: str) -> None:
    more = {
        "create": {"file_text": "x"},
        "str_replace": {"old_str": "a", "new_str": "b"},
        "insert": {"insert_line": 0, "insert_text": "a"},
    }
    assert re.match("Path ", refusal(tool, command, path=path, **more.get(command, {})))


# -- what only ours does ------------------------------------------------------------------------------


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


@pytest.mark.parametrize("path", ESCAPES + OURS_TOO)
def test_no_command_takes_such_a_path(mem: muniment.Memory, path: str) -> None:
    files = MemoryFiles(mem, user_id="ana")
    files.create("/memories/a", "text")
    for call in (
        lambda: files.view(path),
        lambda: files.create(path, "x"),
        lambda: files.str_replace(path, "text", "x"),
        lambda: files.insert(path, 0, "x"),
        lambda: files.delete(path),
        lambda: files.rename(path, "/memories/b"),
        lambda: files.rename("/memories/a", path),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert files.view("/memories/a").endswith("\ttext")


@settings(max_examples=examples(100), deadline=None)
@given(path=st.text(st.sampled_from("./\\%2eEfF am\x00é"), max_size=12))
def test_whatever_the_path_it_stays_inside(path: str) -> None:
    from muniment.integrations.anthropic.files import _place

    try:
        place = _place(f"/memories{path}")
    except InvalidInput:
        return
    assert place == "/memories" or place.startswith("/memories/")
    assert not {"", ".", ".."} & set(place.split("/")[1:])


def test_a_command_as_a_model_gives_it(mem: muniment.Memory) -> None:
    files = MemoryFiles(mem, user_id="ana")
    files.run({"command": "create", "path": "/memories/a", "file_text": "x"})
    assert files.run({"command": "view", "path": "/memories/a"}).endswith("\tx")
    for bad in ({"command": "format"}, {}, {"command": "view"}, {"command": "view", "path": "/memories", "x": 1}):
        with pytest.raises(InvalidInput):
            files.run(bad)


def test_a_file_is_no_directory(mem: muniment.Memory) -> None:
    files = MemoryFiles(mem, user_id="ana")
    files.create("/memories/a", "x")
    with pytest.raises(InvalidInput, match="not a directory"):
        files.create("/memories/a/b", "x")
    with pytest.raises(InvalidInput, match="into itself"):
        files.rename("/memories/a", "/memories/a/b")


def test_users_do_not_see_each_other(mem: muniment.Memory) -> None:
    MemoryFiles(mem, user_id="ana").create("/memories/a", "ana's")
    with pytest.raises(InvalidInput, match="does not exist"):
        MemoryFiles(mem, user_id="ben").view("/memories/a")
    mem.forget(user_id="ana")
    with pytest.raises(InvalidInput, match="does not exist"):
        MemoryFiles(mem, user_id="ana").view("/memories/a")


def test_edits_are_history_and_files_are_found(mem: muniment.Memory) -> None:
    files = MemoryFiles(mem, user_id="ana")
    files.create("/memories/city.md", "# City\nAna lives in Berlin.")
    files.create("/memories/pets.md", "The cat is called Toby.")
    files.str_replace("/memories/city.md", "Berlin", "Hamburg")
    assert files.search("who is Toby", 1) == [("/memories/pets.md", "The cat is called Toby.")]
    assert files.search("Hamburg") != []
    assert [(status, "Berlin" in text) for _, status, text in files.history("/memories/city.md")] == [
        ("superseded", True),
        ("live", False),
    ]
    files.delete("/memories/pets.md")
    assert files.search("who is Toby") == []


def test_erased_files_leave_nothing(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        files = MemoryFiles(mem, user_id="ana", erase=True)
        files.create("/memories/a", "xyzzy")
        files.insert("/memories/a", 0, "plugh")
        files.delete("/memories/a")
        files.create("/memories/b", "frobozz")
        files.clear()
        files.clear()
        assert mem.verify().ok
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(word in held for word in (b"xyzzy", b"plugh", b"frobozz"))


def test_the_same_with_await(mem: muniment.Memory) -> None:
    pytest.importorskip("anthropic", reason=NEEDS)
    from anthropic.lib.tools import ToolError

    from muniment.integrations.anthropic import AsyncMunimentMemoryTool

    async def work() -> None:
        tool = AsyncMunimentMemoryTool(mem, user_id="ana")
        await tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
        assert str(await tool.call({"command": "view", "path": "/memories/a"})).endswith("\tx")
        with pytest.raises(ToolError, match="already exists"):
            await tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
        assert await tool.clear_all_memory() == "All memory cleared"

    asyncio.run(work())
