"""Keyword files at the gateway: synced, flushed into a clone, compared, rescued."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from provisioner.gateways.perforce.types import ClientSpec
from tests.support.owned_clients import compared, owned_client, write
from tests.support.perforce_desk import Desk
from tests.support.perforce_scene import PerforceScene, ignore_progress

TEXT = "$Id$\n$Revision$\none\n"
KINDS = {"k": "text+k", "ko": "text+ko", "kx": "text+kx", "plain": "text"}


@pytest.fixture
def change(perforce: PerforceScene) -> int:
    """Submit keyword files; return the change."""
    author = perforce.make_client("keys")
    root = Path(author.root)
    root.mkdir(parents=True, exist_ok=True)
    with perforce.at_the_shell(author.name) as shell:
        for name, kind in KINDS.items():
            (root / name).write_text(TEXT)
            shell.run("add", "-t", kind, f"{perforce.folder}/{name}")
        records = shell.run("submit", "-d", "keywords").records
    return int(records[-1]["submittedChange"])


def changes_found(scene: PerforceScene, spec: ClientSpec) -> list[str]:
    """Return what p4 finds changed in a client."""
    with scene.at_the_shell(spec.name) as shell:
        reply = shell.run("reconcile", "-n", f"//{spec.name}/...")
    return [str(record["depotFile"]) for record in reply.records]


def test_a_synced_tree_is_flushed_into_its_clone(
    perforce: PerforceScene, change: int
) -> None:
    """The clone's files are byte by byte what the server says they are."""
    template = perforce.make_client("template")
    perforce.gateway.files.sync(
        template.name, change=change, on_progress=ignore_progress
    )
    assert (
        f"{perforce.folder}/k#1 $\n$Revision: #1 $"
        in (Path(template.root) / "k").read_text()
    )
    clone = perforce.make_client("clone")
    shutil.copytree(template.root, clone.root)

    perforce.gateway.files.flush(clone.name, change=change)

    assert changes_found(perforce, clone) == []
    with perforce.at_the_shell(clone.name) as shell:
        assert shell.run("diff", "-se", f"//{clone.name}/...").records == []


def test_only_what_a_person_changed_is_found(
    perforce: PerforceScene, change: int
) -> None:
    spec = owned_client(perforce)
    perforce.gateway.files.sync(spec.name, change=change, on_progress=ignore_progress)
    assert compared(perforce, spec, change=change) == {}

    text = (Path(spec.root) / "k").read_text()
    write(spec, "k", text.replace("one", "mine"))
    assert compared(perforce, spec, change=change) == {"k": "edit"}


def test_a_rescue_shelves_what_was_written(
    perforce: PerforceScene, change: int
) -> None:
    spec = perforce.make_client()
    perforce.gateway.files.sync(spec.name, change=change, on_progress=ignore_progress)
    desk = Desk(scene=perforce, spec=spec, change=change)
    mine = (desk.root / "k").read_bytes().replace(b"one", b"mine")
    desk.edit("k", mine)

    [shelf] = desk.shelve().shelves

    assert desk.printed("k", change=shelf.change) == mine
