"""Which repository a directory belongs to: worktrees, submodules, copies, renames, clones, and no git at all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from muniment.errors import InvalidInput
from muniment.surfaces.hosts.repository import find_repository, scoped_tenant

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")


def git(where: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=where, check=True, capture_output=True)


def made(path: Path, origin: str | None = None) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    if origin is not None:
        git(path, "remote", "add", "origin", origin)
    return path


def tenant(path: Path, **more: str) -> str:
    return scoped_tenant("default", path, **more)


def test_two_repositories_are_apart_and_each_is_the_same_again(tmp_path: Path) -> None:
    one, two = made(tmp_path / "a" / "garden"), made(tmp_path / "b" / "garden")
    (one / "src" / "deep").mkdir(parents=True)
    assert tenant(one) == tenant(one / "src" / "deep") == tenant(one)
    assert tenant(one) != tenant(two)
    assert tenant(one).startswith("default.garden-")
    assert tenant(one, kind="none") == "default"
    assert scoped_tenant("acme", one) == tenant(one).replace("default.", "acme.")


def test_worktrees_share_and_submodules_do_not(tmp_path: Path) -> None:
    one, two = made(tmp_path / "one"), made(tmp_path / "two")
    git(one, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "feature")
    git(one, "submodule", "add", "-q", str(two), "inner")
    assert tenant(tmp_path / "beside") == tenant(one)
    assert find_repository(tmp_path / "beside").branch == "feature"
    assert tenant(one / "inner") not in (tenant(one), tenant(two))
    assert find_repository(one / "inner").root == one / "inner"


def test_a_renamed_directory_keeps_its_memory_and_a_copy_does_not_get_it(tmp_path: Path) -> None:
    one = made(tmp_path / "one")
    first = tenant(one)
    shutil.copytree(one, tmp_path / "copy")
    assert tenant(tmp_path / "copy") not in (first, "default")
    assert tenant(tmp_path / "copy") == tenant(tmp_path / "copy")
    one.rename(tmp_path / "other")
    assert tenant(tmp_path / "other") == first
    assert tenant(made(tmp_path / "one")) != first, "a new repository where the old one was is another"
    assert tenant(tmp_path / "other") == first


def test_clones_of_a_remote_share_only_where_that_is_asked_for(tmp_path: Path) -> None:
    made(tmp_path / "origin")
    for name in ("left", "right"):
        git(tmp_path, "clone", "-q", str(tmp_path / "origin"), name)
    left, right = tmp_path / "left", tmp_path / "right"
    assert tenant(left) != tenant(right)
    assert tenant(left, kind="remote") == tenant(right, kind="remote") != tenant(left)
    alone = made(tmp_path / "alone")
    assert tenant(alone, kind="remote") == tenant(alone), "without a remote it is the checkout's own"


@pytest.mark.parametrize(
    "url",
    [
        "git@Example.org:team/garden.git",
        "https://example.org/team/garden",
        "https://token:x@example.org/team/garden.git",
        "ssh://git@example.org:2222/team/garden.git/",
    ],
)
def test_one_remote_is_one_however_it_is_reached(tmp_path: Path, url: str) -> None:
    one, same = made(tmp_path / "one", "https://example.org/team/garden.git"), made(tmp_path / "same", url)
    other = made(tmp_path / "other", "https://example.org/team/harbour")
    assert tenant(one, kind="remote") == tenant(same, kind="remote") != tenant(other, kind="remote")


def test_branches_are_one_memory_or_apart_as_the_policy_says(tmp_path: Path) -> None:
    one = made(tmp_path / "one")
    on = {}
    for branch in ("main", "release/1", "release/2", "feature/x", "feature-x"):
        git(one, "checkout", "-q", "-B", branch)
        on[branch] = {policy: tenant(one, branches=policy) for policy in ("any", "same", "main,release/*")}
    git(one, "checkout", "-q", "--detach")
    on["detached"] = {policy: tenant(one, branches=policy) for policy in ("any", "same", "main,release/*")}
    assert len({each["any"] for each in on.values()}) == 1
    assert len({each["same"] for each in on.values()}) == len(on)
    listed = {name: each["main,release/*"] for name, each in on.items()}
    assert listed["main"] == listed["release/1"] == listed["release/2"] == on["main"]["any"]
    assert len(set(listed.values())) == 4


def test_without_git_it_is_the_directory(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert tenant(tmp_path / "one") != tenant(tmp_path / "two")
    assert tenant(tmp_path / "one") == tenant(tmp_path / "one", branches="same")
    (tmp_path / "one" / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert find_repository(tmp_path / "one").git_dir is None


def test_a_folder_that_only_points_at_another_repository_is_not_taken_for_it(tmp_path: Path) -> None:
    secret = made(tmp_path / "secret")
    git(secret, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "feature")
    git(secret, "submodule", "add", "-q", str(made(tmp_path / "two")), "inner")
    victims = {tenant(secret), tenant(secret / "inner")}

    def plant(name: str, **files: str) -> Path:
        for file, text in files.items():
            path = tmp_path / name / file.replace("__", "/").replace("_", ".", 1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / name

    head = "ref: refs/heads/main\n"
    planted = [
        plant("file", _git="gitdir: ../secret/.git\n"),
        plant("absolute", _git=f"gitdir: {secret}/.git\n"),
        plant("worktree", _git="gitdir: ../secret/.git/worktrees/beside\n"),
        plant("submodule", _git="gitdir: ../secret/.git/modules/inner\n"),
        plant("commondir", _git__HEAD=head, _git__commondir="../../secret/.git\n"),
        plant("own", _git="gitdir: g\n", g__HEAD=head, g__gitdir="../.git\n", g__commondir="../../secret/.git\n"),
        plant(
            "nested",
            _git="gitdir: worktrees/w\n",
            worktrees__w__HEAD=head,
            worktrees__w__gitdir="../../.git\n",
            worktrees__w__commondir="../../../secret/.git\n",
        ),
    ]
    for name, target in {"link": "../secret/.git", "linked_file": "../beside/.git"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").symlink_to(target)
        planted.append(tmp_path / name)
    plant("linked_common", _git="gitdir: worktrees/beside\n")
    (tmp_path / "linked_common" / "worktrees").symlink_to("../secret/.git/worktrees")
    planted.append(tmp_path / "linked_common")
    taken = [place.name for place in planted if tenant(place) in victims or tenant(place / "deep") in victims]
    assert taken == []
    assert tenant(tmp_path / "beside") == tenant(secret), "a worktree of git's own is one with it as before"


def test_git_directories_apart_from_their_checkouts_are_followed_where_they_lead_back(tmp_path: Path) -> None:
    one = made(tmp_path / "one")
    git(one, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "feature")
    named = one / ".git" / "worktrees" / "beside" / "gitdir"
    named.write_text("../../../../beside/.git\n")  # as newer versions write it, where they are asked to
    assert tenant(tmp_path / "beside") == tenant(one)
    (tmp_path / "apart").mkdir()
    git(tmp_path / "apart", "init", "-q", "--separate-git-dir", str(tmp_path / "kept.git"))
    found = find_repository(tmp_path / "apart")
    held = (tmp_path / "kept.git" / "config").read_text()
    assert found.git_dir == (tmp_path / "kept.git" if "worktree" in held else None)
    git(tmp_path / "apart", "config", "core.worktree", str(tmp_path / "apart"))
    assert find_repository(tmp_path / "apart").git_dir == tmp_path / "kept.git"


def test_a_mark_that_is_damaged_or_cannot_be_written_leads_nowhere_else(tmp_path: Path) -> None:
    one, two = made(tmp_path / "one"), made(tmp_path / "two")
    victim = tenant(two)
    for bad in ("", "[]", "{}", '{"id": "../../x", "path": "/"}', '{"id": 3, "path": "/"}', "[" * 9000):
        (one / ".git" / "muniment-repository.json").write_text(bad)
        assert tenant(one) != victim
        assert tenant(one) == tenant(one)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="checkout"):
        scoped_tenant("default", tmp_path, kind="all")
