"""What a drift check compares: our rows, and what ONTAP and Perforce have."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.drift.models import Finding
from provisioner.gateways.ontap.types import (
    OntapJob,
    Volume,
    VolumeSettings,
    VolumeSnapshot,
)
from provisioner.gateways.perforce.standins import SUFFIX as STAND_IN_SUFFIX
from provisioner.gateways.perforce.standins import StandIns
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.marks import ANOTHER_NAME

CLIENT_FILTER = "cy-*"

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_COMMENT = re.compile(
    rf"cloneyard:v1:(workspace|template|mirror|copy)=({_UUID})(?: purpose=([a-z-]+))?"
)
_DESCRIPTION = re.compile(rf"\bCloneyard (workspace|template) \S+ \(({_UUID})\)")
_CLIENT_NAME = re.compile(
    rf"cy-.+?-([wt])([0-9a-f]{{6}})(?:{STAND_IN_SUFFIX}|{ANOTHER_NAME})?"
)


class Wanted(enum.Enum):
    """Whether a row says that something exists; for a failed one anything may."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


def _no_settings(volume: Volume) -> VolumeSettings:
    return VolumeSettings()


@dataclass(frozen=True, kw_only=True)
class KnownTree:
    """A workspace, a template, a mirror or a copy, as its row says it should be.

    `junction_path` is "" if it should not be mounted, None if either is right.
    `client_view` is () if nothing can be said about it. `stand_ins` are the clients
    that stand in for a workspace's own for a while. `is_settled`: it was retired, and
    no work of anybody can be left in it. `is_independent`: its clone was split.
    `size_bytes` is what the volume was given, None where nothing says it; `settings_of`
    says which settings the volume was given.
    """

    kind: str
    id: int
    name: str
    tag: str
    comment: str
    is_in_motion: bool = False
    is_settled: bool = False
    volume: Wanted
    volume_name: str
    volume_uuid: str
    parent_volume: str = ""
    is_independent: bool = False
    size_bytes: int | None = None
    settings_of: Callable[[Volume], VolumeSettings] = _no_settings
    junction_path: str | None
    client: Wanted
    client_name: str = ""
    client_owner: str = ""
    client_root: str = ""
    client_view: tuple[str, ...] = ()
    stand_ins: StandIns | None = None

    @property
    def is_workspace(self) -> bool:
        return self.kind == "workspace"

    @property
    def is_filled(self) -> bool:
        """Whether SnapMirror fills its volume."""
        return self.kind in ("mirror", "copy")

    @property
    def is_mirror(self) -> bool:
        return self.kind == "mirror"

    def has_stand_in(self, client: ClientSpec) -> bool:
        """Return whether this client stood in for its own for a while."""
        return self.stand_ins is not None and self.stand_ins.is_ours(client)

    def is_its_client(self, client: ClientSpec) -> bool:
        """Return whether a client with its tag has the name, owner and root we gave it.

        The tag alone proves nothing: anybody can read a description and copy it.
        """
        return (client.name, client.owner, client.root.rstrip("/")) == (
            self.client_name,
            self.client_owner,
            self.client_root.rstrip("/"),
        )

    @property
    def title(self) -> str:
        return f"the {self.kind} {self.name}"

    def is_proven(self, volume: Volume) -> bool:
        """Return whether a volume without its tag is still the one that we made.

        A clone that was split has no parent any more.
        """
        parent = volume.clone_parent.volume_name if volume.clone_parent else ""
        return (volume.name, volume.uuid) == (
            self.volume_name,
            self.volume_uuid,
        ) and parent in ("", self.parent_volume)

    def is_its_volume(self, volume: Volume) -> bool:
        """Return whether a tagged volume has the name and parent that we gave it."""
        parent = volume.clone_parent.volume_name if volume.clone_parent else ""
        return (volume.name, parent) == (self.volume_name, self.parent_volume)


@dataclass(frozen=True, kw_only=True)
class KnownSnapshot:
    """A snapshot's row. It is needed while a workspace uses it.

    `of` is the kind and the id of the template or the mirror whose volume has it.
    """

    of: tuple[str, int]
    name: str
    uuid: str
    is_published: bool
    is_needed: bool


@dataclass(frozen=True, kw_only=True)
class KnownJob:
    """An ONTAP job that a step started and no longer waits for."""

    uuid: str
    step: str
    operation_id: int
    workspace_id: int | None
    template_id: int | None
    mirror_id: int | None = None
    copy_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Known:
    """The rows of one site.

    `elsewhere` are tags of other sites' rows, `deleted` those of deleted mirrors.
    `domain` is the ServerID of the edge or build server that the site uses, "" for
    others; `other_domains` are those that other sites of the installation use.
    """

    trees: tuple[KnownTree, ...]
    snapshots: tuple[KnownSnapshot, ...] = ()
    # Template and time of every build, as its snapshot's comment says it.
    builds: frozenset[tuple[int, str]] = frozenset()
    jobs: tuple[KnownJob, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    judges_strangers: bool = True
    domain: str = ""
    other_domains: frozenset[str] = frozenset()

    def judges(self, client: ClientSpec) -> bool:
        """Return whether a client without a row is for this site to report.

        Every server of an installation lists the clients of all of them. What is
        opened in one that is bound to an edge is known only there.
        """
        if not self.judges_strangers:
            return False
        if self.domain:
            return client.server_id == self.domain
        return client.server_id not in self.other_domains

    def by_tag(self) -> dict[tuple[str, str], KnownTree]:
        return {(tree.kind, tree.tag): tree for tree in self.trees}


@dataclass(frozen=True, kw_only=True)
class SeenStorage:
    """What ONTAP has: volumes with our prefix, snapshots by volume, unfinished jobs.

    `untagged` are volumes found by uuid or name because no tag led to them, by the name
    in their row. `filled` are the names of the volumes that SnapMirror fills,
    `settings` those of volumes by uuid.
    """

    volumes: tuple[Volume, ...]
    untagged: Mapping[str, Volume] = field(default_factory=dict)
    snapshots: Mapping[str, tuple[VolumeSnapshot, ...]] = field(default_factory=dict)
    jobs: tuple[OntapJob, ...] = ()
    filled: frozenset[str] = frozenset()
    settings: Mapping[str, VolumeSettings] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ClientWork:
    """The work that would be lost with a client."""

    opened: int
    pending: int
    shelved: int

    @property
    def is_empty(self) -> bool:
        return not (self.opened or self.pending or self.shelved)


@dataclass(frozen=True, kw_only=True)
class SeenPerforce:
    """What Perforce has: clients by our pattern; work and views of some of them."""

    clients: tuple[ClientSpec, ...]
    work: Mapping[str, ClientWork] = field(default_factory=dict)
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def tag_of_volume(volume: Volume) -> tuple[str, str] | None:
    """Return the kind of row ("workspace" …) and the tag of a volume of ours.

    None for those of others.
    """
    found = _COMMENT.fullmatch(volume.comment)
    return (found[1], found[2]) if found else None


def purpose_of_volume(volume: Volume) -> str:
    """Return the purpose in a workspace volume's comment, "" if there is none."""
    found = _COMMENT.fullmatch(volume.comment)
    return found[3] or "" if found else ""


def tag_of_client(client: ClientSpec) -> tuple[str, str] | None:
    """Return ("workspace" or "template", tag) of a client of ours, None for others.

    Name and description have to agree: a description is easily copied.
    """
    described = _DESCRIPTION.search(client.description)
    named = _CLIENT_NAME.fullmatch(client.name)
    if described is None or named is None:
        return None
    kind, tag = described[1], described[2]
    agree = (kind[0], tag[:6]) == (named[1], named[2])
    return (kind, tag) if agree else None


def without_tag(description: str) -> str:
    """Return a client's description without the tag that says whose it is."""
    return _DESCRIPTION.sub(
        lambda found: found[0].removesuffix(f" ({found[2]})"), description
    )


def about(tree: KnownTree, **fields: Any) -> Finding:
    """Return an unsaved finding about a row."""
    return Finding(**{f"{tree.kind}_id": tree.id}, **fields)
