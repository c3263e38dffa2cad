"""Clients whose files belong to somebody else than who runs the tests."""

from __future__ import annotations

import os
from pathlib import Path

from provisioner.gateways.hosts.comparing import (
    compare_files,
)
from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.owners import Ids
from provisioner.gateways.perforce.standins import StandIns
from provisioner.gateways.perforce.types import ClientSpec, HaveList
from tests.support.perforce_scene import PerforceScene, ignore_progress

IS_ROOT = os.geteuid() == 0


UID = 20123 if IS_ROOT else os.geteuid()


GID = 20124 if IS_ROOT else os.getegid()


OWNER = Ids(UID, GID)


UNKNOWN = HaveList(count=0, digest="")
"""What no client has, so that what is to be flushed is."""


def owned_client(scene: PerforceScene) -> ClientSpec:
    spec = scene.make_client()
    Path(spec.root).mkdir()
    os.chown(spec.root, UID, GID)
    return spec


def sync(scene: PerforceScene, spec: ClientSpec, *, change: int) -> None:
    run_as(
        OWNER,
        scene.gateway.files.sync,
        spec.name,
        change=change,
        on_progress=ignore_progress,
    )


def compared(
    scene: PerforceScene,
    recorded: ClientSpec,
    *,
    change: int,
    pinned: HaveList = UNKNOWN,
    in_batches: bool = False,
) -> dict[str, str]:
    client = scene.gateway.clients.find(recorded.name)
    assert client is not None
    found = compare_files(
        scene.gateway,
        scene.gateway,
        client=client,
        recorded=recorded,
        stand_ins=stand_ins_of(recorded),
        change=change,
        pinned=pinned,
        seen_at=Path(recorded.root),
        ignore=("*.o",),
        owner=OWNER,
        in_batches=in_batches,
    )
    paths = [os.path.relpath(finding.path, recorded.root) for finding in found]
    assert len(set(paths)) == len(paths)
    actions = [finding.action for finding in found]
    return dict(zip(paths, actions, strict=True))


def write(spec: ClientSpec, name: str | bytes, content: str) -> None:
    path = os.path.join(os.fsencode(spec.root), os.fsencode(name))
    if os.path.exists(path):
        os.chmod(path, 0o644)
    with open(path, "w") as file:
        file.write(content)
    os.chown(path, UID, GID)


def stand_ins_of(spec: ClientSpec) -> StandIns:
    return StandIns(client=spec.name, tag=TAG, secret="not told")


TAG = "8b1f7a52-4b0f-4f0e-9a55-0123456789ab"
