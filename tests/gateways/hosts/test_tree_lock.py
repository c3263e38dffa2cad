"""Two hosts, one tree: who comes second waits, and nobody waits for the dead."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from provisioner.gateways.errors import Busy, TransientGatewayError
from provisioner.gateways.hosts.tree_lock import NAME, TreeLock
from tests.support.tree_locks import beating

STALE_SECONDS = 1.0


def lock_of(tree: Path, place: str) -> TreeLock:
    return TreeLock(tree, place=place, stale_seconds=STALE_SECONDS)


def test_who_comes_second_waits_for_who_is_alive(tmp_path: Path) -> None:
    with (
        lock_of(tmp_path, "h1").held() as first,
        beating(first),
        pytest.raises(Busy, match="A command still runs in"),
        lock_of(tmp_path, "h2").held(),
    ):
        pytest.fail("two at a time")
    with lock_of(tmp_path, "h2").held():
        assert "h2" in (tmp_path / NAME).read_text()
    assert os.listdir(tmp_path) == []


def test_who_is_silent_is_waited_for_as_long_as_its_command_may_live(
    tmp_path: Path,
) -> None:
    with lock_of(tmp_path, "h1").held():
        began = time.monotonic()
        with lock_of(tmp_path, "h2").held():
            assert time.monotonic() - began >= STALE_SECONDS


def test_a_killed_worker_of_the_same_place_is_not_waited_for(tmp_path: Path) -> None:
    first = lock_of(tmp_path, "h1").held()
    first.__enter__()
    with beating(lock_of(tmp_path, "h1")), lock_of(tmp_path, "h1").held():
        assert (tmp_path / NAME).exists()


def test_a_command_that_removes_the_lock_does_not_have_it_removed(
    tmp_path: Path,
) -> None:
    with lock_of(tmp_path, "h1").held() as first:
        (tmp_path / NAME).unlink()
        first.beat()
        with (
            beating(first),
            pytest.raises(Busy),
            lock_of(tmp_path, "h2").held(),
        ):
            pytest.fail("two at a time")


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("stays")
    os.utime(precious, (1, 1))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / NAME).symlink_to(precious)

    with lock_of(tree, "h1").held() as lock:
        (tree / NAME).unlink()
        (tree / NAME).symlink_to(precious)
        lock.beat()

    assert (precious.read_text(), precious.stat().st_mtime) == ("stays", 1)


def test_what_cannot_be_locked_says_so(tmp_path: Path) -> None:
    (tmp_path / NAME / "file").mkdir(parents=True)

    with (
        pytest.raises(TransientGatewayError, match="cannot be written"),
        lock_of(tmp_path, "h1").held(),
    ):
        pytest.fail("it was not taken")


def test_waiting_leaves_no_lock_and_writes_none(tmp_path: Path) -> None:
    """A full volume is cleaned, too."""
    lock_of(tmp_path, "h2").wait()
    with (
        lock_of(tmp_path, "h1").held() as first,
        beating(first),
        pytest.raises(Busy, match="A command still runs in"),
    ):
        lock_of(tmp_path, "h2").wait()
    killed = lock_of(tmp_path, "h1").held()
    killed.__enter__()
    began = time.monotonic()

    lock_of(tmp_path, "h2").wait()

    assert time.monotonic() - began >= STALE_SECONDS
    assert os.listdir(tmp_path) == []


def test_a_directory_in_its_place_is_waited_for_and_left(tmp_path: Path) -> None:
    (tmp_path / NAME / "file").mkdir(parents=True)

    lock_of(tmp_path, "h1").wait()

    assert (tmp_path / NAME / "file").exists()
