"""Sync and reconcile as the owner of the files, in a process of its own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from provisioner.gateways.errors import AuthFailed, NotFound, Refused
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import LockUse, SyncProgress
from tests.support.owned_clients import GID, IS_ROOT, OWNER, UID, owned_client, sync
from tests.support.perforce_scene import PerforceScene, ignore_progress

FILES: dict[str, bytes | Path | None] = {
    "readme.txt": b"hello\n",
    "bin/tool.sh": b"#!/bin/sh\n",
    "with space/\u00e9 @#%.txt": b"odd\n",
    "link": Path("readme.txt"),
}


def test_synced_files_belong_to_the_uid(perforce: PerforceScene) -> None:
    change = perforce.submit(FILES)
    spec = owned_client(perforce)
    seen: list[SyncProgress] = []
    told: list[LockUse | None] = []

    def tell(use: LockUse | None) -> bool:
        told.append(use)
        return False

    report = run_as(
        OWNER,
        perforce.gateway.files.sync,
        spec.name,
        change=change,
        on_progress=seen.append,
        on_command=tell,
    )

    if perforce.target.lab_root is not None:
        assert [use.table for use in told if use] == ["db.have"]
    root = Path(spec.root)
    everything = [root, *root.rglob("*")]
    assert {(path.lstat().st_uid, path.lstat().st_gid) for path in everything} == {
        (UID, GID)
    }
    assert (root / "readme.txt").stat().st_mode & 0o777 == 0o444
    assert (root / "bin/tool.sh").stat().st_mode & 0o777 == 0o555
    assert (root / "bin").stat().st_mode & 0o777 == 0o755
    assert report.files == len(FILES)
    assert (seen[-1].files, seen[-1].files_total) == (len(FILES), len(FILES))


def test_reconcile_sees_what_the_owner_changed(perforce: PerforceScene) -> None:
    change = perforce.submit(FILES)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    Path(spec.root, "readme.txt").chmod(0o644)
    Path(spec.root, "readme.txt").write_text("changed\n")
    Path(spec.root, "made.o").write_text("by a build\n")
    Path(spec.root, "new.c").write_text("untracked\n")

    found = run_as(
        OWNER,
        perforce.gateway.files.reconcile_preview,
        spec.name,
        untracked=True,
        ignore=("*.o",),
    )

    assert {(each.action, each.path) for each in found} == {
        ("edit", f"{spec.root}/readme.txt"),
        ("add", f"{spec.root}/new.c"),
    }


def test_errors_come_back_as_they_were_raised(perforce: PerforceScene) -> None:
    change = perforce.submit(FILES)
    spec = owned_client(perforce)
    wrong = replace(perforce.account, password="wrong secret")

    with pytest.raises(NotFound):
        sync(perforce, spec, change=2_000_000_000)
    with pytest.raises(AuthFailed) as caught:
        run_as(
            OWNER,
            PerforceGateway(wrong).files.sync,
            spec.name,
            change=change,
            on_progress=ignore_progress,
        )

    assert caught.value.system == "perforce"
    assert "wrong secret" not in caught.value.sentence


@pytest.mark.skipif(not IS_ROOT, reason="only root can be somebody else")
def test_files_of_somebody_else_are_not_written(perforce: PerforceScene) -> None:
    change = perforce.submit(FILES)
    spec = perforce.make_client()
    Path(spec.root).mkdir()

    with pytest.raises(Refused) as caught:
        sync(perforce, spec, change=change)

    assert "Permission denied" in caught.value.sentence
    assert os.listdir(spec.root) == []


def test_an_interrupted_sync_goes_on_where_it_stopped(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit({f"d{n % 7}/file{n}": b"x" * 9999 for n in range(900)})
    spec = owned_client(perforce)

    class Interrupted(Exception):
        pass

    def interrupt(progress: SyncProgress) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        run_as(
            OWNER,
            perforce.gateway.files.sync,
            spec.name,
            change=change,
            on_progress=interrupt,
        )
    run_as(
        OWNER,
        perforce.gateway.files.sync,
        spec.name,
        change=change,
        on_progress=ignore_progress,
        replace_leftovers=True,
    )

    assert perforce.gateway.files.have_list(spec.name).count == 900
    assert perforce.gateway.files.reconcile_preview(spec.name, untracked=True) == []


def test_the_owner_of_the_files_shelves_and_reopens_them(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit(FILES)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", f"{perforce.folder}/readme.txt")
        shell.run("edit", f"{perforce.folder}/bin/tool.sh")
    path = Path(spec.root, "readme.txt")
    path.write_text("mine\n")
    path.chmod(0o600)
    Path(spec.root, "bin/tool.sh").unlink()
    opened = perforce.gateway.changes.list_opened(spec.name)

    report = run_as(
        OWNER, perforce.gateway.shelves.shelve_opened, spec.name, workspace="main-1"
    )

    [shelf] = report.shelves
    assert shelf.files == (f"{perforce.folder}/readme.txt",)
    assert [item.depot_file for item in report.not_shelved] == [
        f"{perforce.folder}/bin/tool.sh"
    ]
    perforce.gateway.changes.revert_server_side(spec.name)
    back = run_as(
        OWNER,
        perforce.gateway.shelves.reopen,
        spec.name,
        opened,
        descriptions={},
        shelves=report.shelves,
    )
    assert back.not_opened == ()
    assert perforce.gateway.changes.list_opened(spec.name) == opened
    assert path.read_text() == "mine\n"
