"""Two ONTAP clusters of the lab, peered: a source and a destination of mirrors."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import (
    MirrorVolumeSpec,
    OntapAccount,
    Relationship,
    Volume,
    VolumeSpec,
)
from provisioner.lab.ontap import records
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_scene import GID, SIZE_BYTES, UID, LabControl

PASSWORD = "secret"
POLICY = "cloneyard"
COMMENT = "cloneyard-test"

AnyRow = TypeVar("AnyRow", records.Relationship, records.Transfer)


@dataclass(frozen=True, kw_only=True)
class End:
    """One of two clusters: its gateway, its switches and where its files are."""

    lab: OntapLab
    gateway: OntapGateway
    control: LabControl

    def heal(self) -> None:
        self.control.set_faults()
        self.control.set_settings(
            transfer_seconds=0.0,
            svm_peering=True,
            aggregate_is_full=False,
            aggregate_bytes={},
            snapmirror_license=True,
        )

    def make_volume(self, name: str) -> Volume:
        return self.gateway.create_volume(
            VolumeSpec(
                name=name,
                aggregate=self.lab.config.aggregate,
                size_bytes=SIZE_BYTES,
                comment=COMMENT,
                export_policy="default",
                uid=UID,
                gid=GID,
            )
        )

    def end_relationships(self) -> None:
        """Delete the relationships whose destinations are here."""
        for row in self.lab.array.store.select(records.Relationship):
            running = self.gateway.get_relationship(row.uuid).transfer_uuid
            if running:
                self.gateway.abort_transfer(row.uuid, transfer_uuid=running)
            self.gateway.delete_relationship(row.uuid)

    def clean(self) -> None:
        """Remove what a test made: clones before their parents."""
        left = self.gateway.list_volumes(comment_prefix="cloneyard")
        for volume in sorted(left, key=lambda each: each.clone_parent is None):
            self.gateway.delete_volume(volume.uuid, force=True)


@dataclass(frozen=True, kw_only=True)
class MirroredLabs:
    """A source with a volume "tmpl" and its snapshot cl_7, and a destination."""

    source: End
    destination: End
    volume: Volume

    @property
    def there(self) -> OntapGateway:
        return self.destination.gateway

    @property
    def source_path(self) -> str:
        return f"{self.source.lab.config.svm}:{self.volume.name}"

    def write(self, text: str) -> None:
        write(self.source, self.volume, text)

    def make_volume(self) -> Volume:
        return self.there.create_mirror_volume(
            MirrorVolumeSpec(
                name="tmpl_dst",
                aggregate=self.destination.lab.config.aggregate,
                size_bytes=SIZE_BYTES,
                comment=COMMENT,
                export_policy="default",
            )
        )

    def relate(self) -> Relationship:
        self.make_volume()
        return self.there.create_relationship(
            "tmpl_dst", source_path=self.source_path, policy=POLICY
        )

    def rows(self, kind: type[AnyRow]) -> list[AnyRow]:
        """Return what the destination has of relationships, or of transfers."""
        return self.destination.lab.array.store.select(kind)

    def clean(self) -> None:
        ends = (self.destination, self.source)
        for end in ends:
            end.heal()
            end.end_relationships()
        for end in ends:
            for known in end.lab.array.store.select(records.Destination):
                end.gateway.release_relationship(known.uuid)
        self.destination.clean()
        self.source.clean()


def write(end: End, volume: Volume, text: str) -> None:
    """Have this text in the one file of a volume."""
    files = end.lab.array.root / "data" / "volumes" / volume.uuid
    (files / "file").write_text(text)


@pytest.fixture(scope="module")
def two_clusters() -> Iterator[OntapLab]:
    """Two clusters, on a root that other uids reach: builds run as the template's."""
    root = Path(tempfile.mkdtemp(prefix="cloneyard-mirrored-", dir="/var/tmp"))
    root.chmod(0o755)
    try:
        yield from _clusters(root)
    finally:
        shutil.rmtree(root)


def _clusters(root: Path) -> Iterator[OntapLab]:
    far = OntapConfig(root / "b", password=PASSWORD, cluster="far", svm="svm_far")
    with OntapLab(OntapConfig(root / "a", password=PASSWORD, peer=far)) as lab:
        yield lab


@pytest.fixture
def mirrored_labs(two_clusters: OntapLab) -> Iterator[MirroredLabs]:
    assert two_clusters.peer is not None
    source, destination = _end(two_clusters), _end(two_clusters.peer)
    volume = source.make_volume("tmpl")
    labs = MirroredLabs(source=source, destination=destination, volume=volume)
    labs.write("first")
    source.gateway.create_snapshot(volume.uuid, name="cl_7", comment="")
    if not destination.gateway.has_mirror_policy(POLICY):
        destination.gateway.create_mirror_policy(POLICY, label=POLICY, keep=5)
    yield labs
    labs.clean()
    for end in (source, destination):
        end.gateway.close()


def _end(lab: OntapLab) -> End:
    account = OntapAccount(
        host="127.0.0.1",
        port=lab.port,
        user=lab.config.user,
        password=PASSWORD,
        ca_file=str(lab.ca_file),
        svm=lab.config.svm,
        timeout_seconds=10,
    )
    return End(
        lab=lab, gateway=OntapGateway(account), control=LabControl(account=account)
    )
