"""Comparing directory by directory: the same findings as in one command."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused, Unreachable
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce import batching
from provisioner.gateways.perforce.batching import local_batches_of
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.types import LockUse, ReconcileFinding
from tests.support.owned_clients import GID, OWNER, UID, owned_client, sync, write
from tests.support.perforce_scene import PerforceScene

TREE: dict[str, bytes | Path | None] = {
    "readme": b"1\n",
    "src/main.c": b"1\n",
    "src/deep/er/x": b"1\n",
    "docs/a name": b"1\n",
    "at@home/file#1": b"1\n",
    "gone/file": b"1\n",
    "moved/from": b"a line that is found again\n",
}


def changed_tree(scene: PerforceScene, *, below: str = "") -> str:
    """Return a client whose files were changed, removed, moved and added."""
    prefix = f"{below}/" if below else ""
    change = scene.submit({f"{prefix}{n}": content for n, content in TREE.items()})
    client = scene.make_client()
    scene.gateway.files.sync(client.name, change=change, on_progress=lambda _: None)
    # What is had and not in the depot any more, as a whole directory of it.
    scene.submit({f"{prefix}docs/a name": None})
    root = Path(client.root) / below
    for name in ("src/main.c", "at@home/file#1", "docs/a name"):
        (root / name).chmod(0o644)
        (root / name).write_bytes(b"changed\n")
    shutil.rmtree(root / "gone")
    (root / "elsewhere").mkdir()
    (root / "moved/from").rename(root / "elsewhere/to")
    for name in ("new@1/a b/file", "src/new", "new", "ignored/file"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"new\n")
    (root / "link").symlink_to(root / "src")
    return client.name


def told(findings: list[ReconcileFinding]) -> set[tuple[str, str, str]]:
    assert len({f.path for f in findings}) == len(findings), "each file once"
    return {(f.action, f.depot_file, f.path) for f in findings}


@pytest.mark.parametrize("below", ["", "one/two"])
@pytest.mark.parametrize("untracked", [True, False])
def test_batches_find_what_one_command_does(
    untracked: bool, below: str, perforce: PerforceScene
) -> None:
    client = changed_tree(perforce, below=below)

    at_once, in_batches = (
        perforce.gateway.files.reconcile_preview(
            client, untracked=untracked, ignore=("ignored",), in_batches=each
        )
        for each in (False, True)
    )

    assert told(in_batches) == told(at_once)
    assert len(at_once) == (10 if untracked else 5)


@pytest.mark.parametrize("others_wait", [False, True])
def test_a_comparison_makes_way_for_others(
    others_wait: bool, perforce: PerforceScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_MOST", 2)
    client = changed_tree(perforce)
    asked: list[LockUse | None] = []

    def ask(use: LockUse | None) -> bool:
        asked.append(use)
        return others_wait

    files = perforce.gateway.files
    found = files.reconcile_preview(
        client, untracked=False, in_batches=True, on_command=ask
    )

    assert len(found) == 5
    assert (len(asked) > 2) is others_wait


def test_no_batch_names_what_a_file_server_shows_of_its_snapshots(
    perforce: PerforceScene,
) -> None:
    """There may be hundreds of copies of the tree, and directories closed to us."""
    change = perforce.submit({"src/deep/er/x": b"1\n", "readme": b"1\n"})
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    root = Path(spec.root)
    for place in (root, root / "src"):
        for copy in ("hourly.0", "hourly.1", "hourly.2", "hourly.3"):
            (place / ".snapshot" / copy / "src").mkdir(parents=True)
        (place / ".snapshot/closed").mkdir(mode=0)
    write(spec, "src/new", "new\n")

    with perforce.at_the_shell(spec.name) as shell:
        named = local_batches_of(shell, client=spec.name, root=spec.root)
    found = run_as(
        OWNER,
        perforce.gateway.files.reconcile_preview,
        spec.name,
        untracked=True,
        ignore=(".snapshot",),
        in_batches=True,
    )

    assert [path for path in named if ".snapshot" in path] == []
    assert any(path.endswith("/src/deep/er/...") for path in named)
    assert [finding.path for finding in found] == [f"{spec.root}/src/new"]


@pytest.mark.parametrize("closed", ["closed", "src/closed", "src/deep/closed"])
def test_a_directory_that_cannot_be_listed_is_named_in_batches_as_at_once(
    closed: str, perforce: PerforceScene
) -> None:
    change = perforce.submit({"src/deep/er/x": b"1\n", "readme": b"1\n"})
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    os.mkdir(f"{spec.root}/{closed}", mode=0)
    os.chown(f"{spec.root}/{closed}", UID, GID)

    def compared(*, ignore: tuple[str, ...], in_batches: bool) -> list[str]:
        found = run_as(
            OWNER,
            perforce.gateway.files.reconcile_preview,
            spec.name,
            untracked=True,
            ignore=ignore,
            in_batches=in_batches,
        )
        return [finding.path for finding in found]

    for in_batches in (False, True):
        assert compared(ignore=("closed",), in_batches=in_batches) == []
        with pytest.raises(Refused) as refused:
            compared(ignore=(), in_batches=in_batches)
        assert f"{closed}: Permission denied" in refused.value.sentence


def test_many_directories_share_commands(
    perforce: PerforceScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = changed_tree(perforce)
    at_once = perforce.gateway.files.reconcile_preview(client, untracked=True)
    monkeypatch.setattr(batching, "_MOST", 2)

    in_batches = perforce.gateway.files.reconcile_preview(
        client, untracked=True, in_batches=True
    )

    assert told(in_batches) == told(at_once)


def test_files_are_restored_in_batches_and_again(perforce: PerforceScene) -> None:
    client = changed_tree(perforce)

    restored = perforce.gateway.files.restore(client, in_batches=True)

    assert len(restored) == 5
    assert perforce.gateway.files.restore(client, in_batches=True) == []


def test_a_lost_reply_in_between_leaves_nothing_that_the_next_attempt_minds(
    perforce: PerforceScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = changed_tree(perforce)
    run, commands = Connection.run, []

    def lose_third(self: Connection, *command: str, **how: object) -> Reply:
        reply = run(self, *command, **how)  # type: ignore[arg-type]
        commands.append(command[0])
        if commands.count("reconcile") == 3:
            raise Unreachable("Lost.", system="perforce", operation="reconcile")
        return reply

    monkeypatch.setattr(Connection, "run", lose_third)
    with pytest.raises(Unreachable):
        perforce.gateway.files.restore(client, in_batches=True)
    monkeypatch.undo()

    assert len(perforce.gateway.files.restore(client, in_batches=True)) == 5


def test_others_get_the_locks_between_batches(
    perforce: PerforceScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = changed_tree(perforce)
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)

    perforce.gateway.files.reconcile_preview(client, untracked=False, in_batches=True)

    assert len(rests) > 3
    assert all(0 <= rest <= batching.LONGEST_REST_SECONDS for rest in rests)
