"""Comparing files before they go, where the view was changed or names are odd."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.comparing import (
    compare_files,
    is_same_view,
)
from provisioner.gateways.perforce.files.have import HaveLists
from provisioner.gateways.perforce.standins import Purpose
from provisioner.gateways.perforce.types import ClientSpec, HaveList
from tests.support.owned_clients import (
    OWNER,
    TAG,
    UNKNOWN,
    compared,
    owned_client,
    stand_ins_of,
    sync,
    write,
)
from tests.support.perforce_scene import PerforceScene
from tests.support.snapshot_directories import KINDS, shown_in

TREE: dict[str, bytes | Path | None] = {
    "src/a.c": b"a\n",
    "src/b.c": b"b\n",
    "lib/c.c": b"c\n",
}


def narrowed(scene: PerforceScene, spec: ClientSpec) -> None:
    view = (f"{scene.folder}/src/... //{spec.name}/src/...",)
    scene.gateway.clients.save(replace(spec, view=view))


def test_the_same_view_is_compared_as_it_is(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    write(spec, "src/a.c", "mine\n")
    write(spec, "lib/new.c", "new\n")
    write(spec, "lib/new.o", "built\n")
    Path(spec.root, "src/b.c").unlink()
    stand_ins = stand_ins_of(spec)
    left = stand_ins.new_name(Purpose.COMPARE)
    perforce.gateway.clients.save(
        perforce.client_spec("left", name=left, description=f"({TAG})\n", view=())
    )

    assert compared(perforce, spec, change=change) == {
        "src/a.c": "edit",
        "lib/new.c": "add",
        "src/b.c": "delete",
    }
    assert stand_ins_of(spec).find_all(perforce.gateway) == []


def test_a_narrowed_view_hides_nothing(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    narrowed(perforce, spec)
    write(spec, "src/a.c", "mine\n")
    write(spec, "lib/c.c", "mine\n")
    write(spec, "lib/new.c", "new\n")
    write(spec, "lib/new.o", "built\n")

    assert compared(perforce, spec, change=change) == {
        "src/a.c": "edit",
        "lib/c.c": "edit",
        "lib/new.c": "add",
    }
    assert stand_ins_of(spec).find_all(perforce.gateway) == []


@pytest.mark.parametrize("had_before", [True, False])
def test_a_large_view_is_flushed_in_batches_to_compare_it(
    had_before: bool, perforce: PerforceScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once only if that leads nowhere, as it would keep others waiting."""
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    pinned = perforce.gateway.files.have_list(spec.name)
    narrowed(perforce, spec)
    write(spec, "lib/c.c", "mine\n")
    asked: list[bool] = []
    flush = HaveLists.flush

    def watched(
        here: HaveLists, client: str, *, in_batches: bool = False, **how: Any
    ) -> None:
        asked.append(in_batches)
        flush(here, client, in_batches=in_batches, **how)

    monkeypatch.setattr(HaveLists, "flush", watched)
    other = HaveList(count=1, digest="")

    found = compared(
        perforce,
        spec,
        change=change,
        pinned=pinned if had_before else other,
        in_batches=True,
    )

    assert found == {"lib/c.c": "edit"}
    assert asked == ([True] if had_before else [True, False])


def test_what_a_narrowed_view_took_away_is_not_missed(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    newer = perforce.submit({"src/a.c": b"newer\n"})
    narrowed(perforce, spec)
    sync(perforce, spec, change=newer)

    assert compared(perforce, spec, change=change) == {}


def test_what_others_added_to_the_depot_meanwhile_is_not_missed(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    perforce.submit({"src/new.c": b"theirs\n", "src/not-here.c": b"theirs\n"})
    write(spec, "src/new.c", "mine\n")
    os.mkdir(f"{spec.root}/elsewhere")
    os.symlink("/etc", f"{spec.root}/elsewhere/link")

    assert compared(perforce, spec, change=change) == {
        "src/new.c": "add",
        "elsewhere/link": "add",
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_narrowed", [True, False])
def test_what_a_file_server_shows_of_its_snapshots_is_nobodys_work(
    is_narrowed: bool, kind: str, perforce: PerforceScene
) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    if is_narrowed:
        narrowed(perforce, spec)
    write(spec, "lib/new.c", "new\n")
    root = Path(spec.root)

    with shown_in(root, root / "src", root / "lib", kind=kind):
        found = [
            compared(perforce, spec, change=change, in_batches=in_batches)
            for in_batches in (False, True)
        ]

    assert found == [{"lib/new.c": "add"}] * 2


def test_what_no_view_maps_is_not_missed(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    narrowed(perforce, spec)
    spec = replace(spec, view=(f"{perforce.folder}/src/... //{spec.name}/src/...",))
    sync(perforce, spec, change=change)
    write(spec, "notes.txt", "mine\n")
    write(spec, "notes.o", "built\n")

    assert compared(perforce, spec, change=change) == {"notes.txt": "add"}


def test_a_directory_that_cannot_be_listed_counts_as_untracked(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    os.mkdir(f"{spec.root}/closed", mode=0)
    os.mkfifo(f"{spec.root}/pipe")

    assert compared(perforce, spec, change=change) == {"closed": "add"}


def test_views_are_the_same_however_they_are_written(perforce: PerforceScene) -> None:
    spec = perforce.client_spec()
    quoted = replace(
        spec, view=tuple(f'"{line.split()[0]}" {line.split()[1]}' for line in spec.view)
    )

    assert is_same_view(spec, quoted)
    assert not is_same_view(spec, replace(spec, stream="//a/b"))
    assert not is_same_view(spec, replace(spec, view=spec.view * 2))


def test_names_that_are_not_utf8_are_untracked_files_too(
    lab_perforce: PerforceScene,
) -> None:
    change = lab_perforce.submit(TREE)
    spec = owned_client(lab_perforce)
    sync(lab_perforce, spec, change=change)
    write(spec, "src/a.c", "mine\n")
    write(spec, b"src/bad\xff [*]\n?#name", "odd\n")
    os.mkdir(os.fsencode(spec.root) + b"/dir\xe9")
    write(spec, b"dir\xe9/plain", "odd\n")
    os.symlink("a.c", os.fsencode(spec.root) + b"/src/link\xe9")

    assert compared(lab_perforce, spec, change=change) == {
        "src/a.c": "edit",
        "src/bad\udcff [*]\n?#name": "add",
        "dir\udce9/plain": "add",
        "src/link\udce9": "add",
    }


def test_a_refusal_for_another_reason_stays_one(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = owned_client(perforce)
    sync(perforce, spec, change=change)
    client = perforce.gateway.clients.find(spec.name)
    assert client is not None
    perforce.gateway.clients.save(replace(spec, host="another-host"))

    with pytest.raises(Refused):
        compare_files(
            perforce.gateway,
            perforce.gateway,
            client=client,
            recorded=spec,
            stand_ins=stand_ins_of(spec),
            change=change,
            pinned=UNKNOWN,
            seen_at=Path(spec.root),
            ignore=(),
            owner=OWNER,
        )
    assert compared(perforce, spec, change=change) == {}
