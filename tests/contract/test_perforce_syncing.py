"""Syncing directory by directory: the same files and have list as in one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.gateways.errors import Unreachable
from provisioner.gateways.perforce import batching
from provisioner.gateways.perforce.connection import Connection, Reply
from provisioner.gateways.perforce.types import (
    ClientSpec,
    LockUse,
    Part,
    SyncPhase,
    SyncProgress,
    TreeSize,
)
from tests.support.perforce_scene import PerforceScene

TREE: dict[str, bytes | Path | None] = {
    "readme": b"1\n",
    "src/main.c": b"1\n",
    "src/deep/er/x": b"1\n",
    "docs/a name": b"1\n",
    "at@home/file#1": b"1\n",
    "gone/file": b"1\n",
}


def ignored(_: SyncProgress) -> None:
    """Nobody looks."""


def files_of(client: ClientSpec) -> dict[str, bytes]:
    root = Path(client.root)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def two_clients(scene: PerforceScene) -> tuple[ClientSpec, ClientSpec]:
    return scene.make_client("once"), scene.make_client("batched")


def test_batches_lead_where_one_command_does(perforce: PerforceScene) -> None:
    scene = perforce
    first = scene.submit(TREE)
    pinned = scene.submit({"src/main.c": b"2\n", "gone/file": None, "new/x": b"2\n"})
    later = scene.submit({"docs/a name": b"3\n", "later/x": b"3\n"})
    part = Part(path=f"{scene.folder}/docs/...", change=later)
    once, batched = two_clients(scene)

    # A new tree, one that follows, one that is there already, and one that goes back.
    for change, parts in (
        (first, []),
        (pinned, [part]),
        (pinned, [part]),
        (first, []),
    ):
        for client, in_batches in ((once, False), (batched, True)):
            scene.gateway.files.sync(
                client.name,
                change=change,
                parts=parts,
                on_progress=ignored,
                in_batches=in_batches,
            )

        assert scene.gateway.files.have_list(
            batched.name
        ) == scene.gateway.files.have_list(once.name)
        assert files_of(batched) == files_of(once)
        assert not scene.gateway.files.count_out_of_sync(
            batched.name, change=change, parts=parts
        )


def test_what_the_view_has_no_longer_goes(perforce: PerforceScene) -> None:
    scene = perforce
    change = scene.submit(TREE)
    client = scene.make_client()
    scene.gateway.files.sync(
        client.name, change=change, on_progress=ignored, in_batches=True
    )
    scene.make_client(view=(f"{scene.folder}/src/... //{client.name}/src/...",))

    scene.gateway.files.sync(
        client.name, change=change, on_progress=ignored, in_batches=True
    )

    assert set(files_of(client)) == {"src/main.c", "src/deep/er/x"}
    assert scene.gateway.files.have_list(client.name).count == 2


def test_a_sync_that_lost_its_connection_goes_on_where_it_was(
    perforce: PerforceScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = perforce
    change = scene.submit(TREE)
    once, batched = two_clients(scene)
    scene.gateway.files.sync(once.name, change=change, on_progress=ignored)
    run, commands = Connection.run, []

    def lose_third(self: Connection, *command: str, **how: object) -> Reply:
        reply = run(self, *command, **how)  # type: ignore[arg-type]
        commands.append(command[0])
        if commands.count("sync") == 3:
            raise Unreachable("Lost.", system="perforce", operation="sync")
        return reply

    monkeypatch.setattr(Connection, "run", lose_third)
    with pytest.raises(Unreachable):
        scene.gateway.files.sync(
            batched.name, change=change, on_progress=ignored, in_batches=True
        )
    monkeypatch.undo()
    had = scene.gateway.files.have_list(batched.name).count
    assert 0 < had < len(TREE)

    report = scene.gateway.files.sync(
        batched.name, change=change, on_progress=ignored, in_batches=True
    )

    assert report.files == len(TREE) - had
    assert scene.gateway.files.have_list(batched.name) == scene.gateway.files.have_list(
        once.name
    )
    assert files_of(batched) == files_of(once)


def test_a_half_written_file_in_a_batch_is_fetched_again(
    perforce: PerforceScene,
) -> None:
    scene = perforce
    change = scene.submit(TREE)
    client = scene.make_client()
    leftover = Path(client.root) / "src/main.c"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"hal")

    scene.gateway.files.sync(
        client.name,
        change=change,
        on_progress=ignored,
        replace_leftovers=True,
        in_batches=True,
    )

    assert files_of(client)["src/main.c"] == b"1\n"
    assert not scene.gateway.files.count_out_of_sync(client.name, change=change)


def test_the_progress_of_batches_is_that_of_all_of_them(
    perforce: PerforceScene,
) -> None:
    scene = perforce
    change = scene.submit(TREE)
    client = scene.make_client()
    size = scene.gateway.files.tree_size(client.name, change=change)
    seen: list[SyncProgress] = []

    report = scene.gateway.files.sync(
        client.name,
        change=change,
        on_progress=seen.append,
        in_batches=True,
        expected=size,
    )

    assert size == TreeSize(files=len(TREE), bytes=2 * len(TREE))
    assert (report.files, report.bytes) == (size.files, size.bytes)
    assert seen[-1].phase == SyncPhase.FINISHING
    assert seen[-1].files == len(TREE)
    totals = {s.files_total for s in seen if s.phase == SyncPhase.RECEIVING}
    assert totals <= {len(TREE)}


@pytest.mark.parametrize(("others_wait", "commands"), [(False, 3), (True, 4)])
def test_a_sync_tells_what_its_commands_held_and_makes_way(
    others_wait: bool,
    commands: int,
    lab_perforce: PerforceScene,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "_MOST", 2)
    scene = lab_perforce
    change = scene.submit(TREE)
    client = scene.make_client()
    told: list[LockUse | None] = []

    def tell(use: LockUse | None) -> bool:
        told.append(use)
        return others_wait

    report = scene.gateway.files.sync(
        client.name,
        change=change,
        on_progress=ignored,
        in_batches=True,
        on_command=tell,
    )

    assert report.files == len(TREE)
    assert {(u.command, u.table) for u in told if u} == {("sync", "db.have")}
    assert len(told) == commands
