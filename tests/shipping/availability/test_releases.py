"""The release before is what tags say, in a repository made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shipping.availability.releases import git, newest_release

WHO = ("-c", "user.name=Test", "-c", "user.email=test@example.com")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git("init", "--quiet", "--initial-branch", "main", at=tmp_path)
    commit(tmp_path)
    return tmp_path


def commit(checkout: Path, *tags: str) -> None:
    git(*WHO, "commit", "--quiet", "--allow-empty", "--message", "One", at=checkout)
    for tag in tags:
        git("tag", tag, at=checkout)


def test_without_tags_there_is_none(checkout: Path) -> None:
    commit(checkout, "nightly-7")
    commit(checkout)
    assert newest_release(checkout) == ""


def test_the_newest_before_head_counts(checkout: Path) -> None:
    commit(checkout, "v0.9.0")
    commit(checkout, "v0.10.0-rc1", "v0.10.0")
    commit(checkout, "v0.11.0")
    assert newest_release(checkout) == "v0.10.0", "HEAD itself is none"
    commit(checkout)
    assert newest_release(checkout) == "v0.11.0"


def test_what_is_on_another_branch_is_none(checkout: Path) -> None:
    commit(checkout, "v0.9.0")
    git("checkout", "--quiet", "-b", "next", at=checkout)
    commit(checkout, "v1.0.0")
    git("checkout", "--quiet", "main", at=checkout)
    commit(checkout)
    assert newest_release(checkout) == "v0.9.0"
