"""A server in Unicode mode: it has names in UTF-8, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused
from tests.support.perforce_scene import PerforceScene, running_lab, scene_at

NAMES = ("Größe/名.txt", "plain")
NO_NAME = os.fsdecode("Größe".encode("latin-1"))


@pytest.fixture(scope="module")
def unicode_server() -> Iterator[PerforceScene]:
    with running_lab("--unicode") as target:
        account = replace(target.account, charset="utf8")
        yield from scene_at(replace(target, account=account))


@pytest.fixture
def root(unicode_server: PerforceScene, request: pytest.FixtureRequest) -> Path:
    """A synced client's root, with a file beside whose name is no UTF-8."""
    scene = unicode_server
    change = scene.submit(dict.fromkeys(NAMES, request.node.name.encode() + b"\n"))
    spec = scene.make_client("ws")
    scene.gateway.files.sync(spec.name, change=change, on_progress=lambda _: None)
    (Path(spec.root) / NO_NAME).mkdir(exist_ok=True)
    (Path(spec.root) / NO_NAME / NO_NAME).write_bytes(b"1\n")
    return Path(spec.root)


def test_names_come_and_go_as_they_are(
    unicode_server: PerforceScene, root: Path
) -> None:
    scene, client = unicode_server, unicode_server.client_name()

    assert set(scene.had(client)) == {f"{scene.folder}/{name}" for name in NAMES}
    assert all((root / name).exists() for name in NAMES)
    mapped = scene.gateway.clients.mapped_paths(
        client, [str(root / name) for name in NAMES]
    )
    assert mapped == {str(root / name) for name in NAMES}


def test_what_it_cannot_have_is_refused_and_in_nobodys_way(
    unicode_server: PerforceScene, root: Path
) -> None:
    scene, client = unicode_server, unicode_server.client_name()
    (root / "plain").chmod(0o644)
    (root / "plain").write_bytes(b"mine\n")
    odd = str(root / NO_NAME / NO_NAME)

    assert scene.gateway.clients.mapped_paths(client, [odd, str(root / "plain")]) == {
        str(root / "plain")
    }
    for in_batches in (False, True):
        found = scene.gateway.files.reconcile_preview(
            client, untracked=False, in_batches=in_batches
        )
        assert [finding.path for finding in found] == [str(root / "plain")]
    with pytest.raises(Refused, match="UTF-8"):
        scene.gateway.changes.latest((f"//depot/{NO_NAME}/...",))
