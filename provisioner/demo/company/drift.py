"""Open and resolved findings of the studio."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model

from provisioner.demo.company.events import Log
from provisioner.demo.company.people import People
from provisioner.demo.company.places import Places
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.drift.models import Finding
from provisioner.lib.names import underscored
from provisioner.workspaces.models import Workspace

K = Finding.Kind
A = Finding.Action


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """A tagged clone with its client, whose row does not exist."""

    name: str
    tag: str
    volume_uuid: str
    parent: Built

    @property
    def volume_name(self) -> str:
        return f"cy_{underscored(self.name)}_w{self.tag[:6]}"

    @property
    def client_name(self) -> str:
        return f"cy-{self.name}-w{self.tag[:6]}"


@dataclass(kw_only=True)
class Differences:
    """Differences of ONTAP and Perforce from the rows, for the filling of the lab."""

    orphans: list[Orphan] = field(default_factory=list)
    gone: Workspace | None = None
    untagged: Workspace | None = None
    elsewhere: Workspace | None = None
    without_client: Workspace | None = None
    moved_client: Workspace | None = None


class Drift:
    """Makes findings: a few open ones, and many that were resolved."""

    def __init__(
        self, studio: Studio, *, people: People, places: Places, log: Log
    ) -> None:
        self._studio, self._people = studio, people
        self._places, self._log = places, log

    def find(self, workspaces: list[Workspace], templates: list[Built]) -> Differences:
        """Add findings about idle workspaces; return those workspaces."""
        there = [
            each
            for each in workspaces
            if each.state == Workspace.State.READY
            and each.site == self._places.home
            and each.purpose == Workspace.Purpose.DEVELOPMENT
            and each.created_at < self._studio.calendar.ago(days=4)
            and each.owner != self._people.alice
        ]
        found = Differences()
        chosen = self._studio.chance.sample(there, k=min(5, len(there)))
        if len(chosen) == 5:
            self._of_rows(found, chosen)
        parents = [
            each for each in templates if each.snapshots and not each.plan.is_abroad
        ]
        for _ in range(self._studio.size.findings // 5):
            found.orphans.append(self._orphan(parents))
        for number in range(self._studio.size.findings - len(found.orphans)):
            self._settled(number, there)
        return found

    def _of_rows(self, found: Differences, chosen: list[Workspace]) -> None:
        found.gone, found.untagged, found.elsewhere = chosen[:3]
        found.without_client, found.moved_client = chosen[3:]
        gone, untagged, elsewhere, clientless, moved = chosen
        self._open(
            K.ROW_WITHOUT_VOLUME,
            gone.volume_name,
            f"The volume of the workspace {gone.name} is gone from ONTAP. Finishing "
            "marks the workspace FAILED.",
            action=A.FINISH,
            about=gone,
            external_id=gone.volume_uuid,
        )
        self._open(
            K.VOLUME_UNTAGGED,
            untagged.volume_name,
            f"The volume {untagged.volume_name} of the workspace {untagged.name} has "
            "lost its tag. Finishing puts it back.",
            action=A.FINISH,
            about=untagged,
            external_id=untagged.volume_uuid,
        )
        self._open(
            K.JUNCTION_DIFFERS,
            elsewhere.volume_name,
            f"The volume {elsewhere.volume_name} of the workspace {elsewhere.name} is "
            f"mounted at {elsewhere.junction_path}-old and should be at "
            f"{elsewhere.junction_path}.",
            action=A.FINISH,
            about=elsewhere,
            external_id=elsewhere.volume_uuid,
        )
        self._open(
            K.ROW_WITHOUT_CLIENT,
            clientless.client_name,
            f"The client {clientless.client_name} of the workspace {clientless.name} "
            "is gone from Perforce. Finishing defines it again and flushes it to what "
            "its snapshot has; “p4 reconcile” then opens what differs.",
            action=A.FINISH,
            about=clientless,
        )
        self._open(
            K.CLIENT_DIFFERS,
            moved.client_name,
            f"Root of the client {moved.client_name} of the workspace {moved.name} "
            "was changed. The repair corrects that and leaves the View unchanged.",
            action=A.FINISH,
            about=moved,
        )

    def _orphan(self, parents: list[Built]) -> Orphan:
        chance = self._studio.chance
        owner, parent = (
            chance.choice(self._people.developers),
            chance.choice(parents),
        )
        name = f"{owner.username}-{parent.plan.name}"[:34].rstrip("-")
        orphan = Orphan(
            name=name,
            tag=str(self._studio.uuid()),
            volume_uuid=str(self._studio.uuid()),
            parent=parent,
        )
        self._open(
            K.VOLUME_WITHOUT_ROW,
            orphan.volume_name,
            f"The volume {orphan.volume_name} has the tag of a workspace that is not "
            "in this database. Adopting it makes a row of it.",
            action=A.ADOPT,
            external_id=orphan.volume_uuid,
            workspace_tag=orphan.tag,
        )
        return orphan

    def _open(
        self,
        kind: Finding.Kind,
        subject: str,
        sentence: str,
        *,
        action: Finding.Action,
        about: Workspace | None = None,
        external_id: str = "",
        workspace_tag: str = "",
    ) -> None:
        calendar = self._studio.calendar
        first = calendar.moment(
            after=calendar.ago(days=9), before=calendar.ago(hours=3)
        )
        times = max(int((calendar.now - first) / dt.timedelta(hours=1)), 1)
        self._studio.rows.add(
            Finding(
                site=self._places.home,
                kind=kind,
                subject=subject,
                external_id=external_id,
                tag_kind=Finding.TagKind.WORKSPACE if workspace_tag else "",
                tag=workspace_tag or None,
                sentence=sentence,
                action=action,
                details={},
                workspace=about,
                first_seen_at=first,
                last_seen_at=calendar.ago(minutes=31),
                times_seen=times,
            )
        )
        self._tell("drift_found", sentence, kind, subject, at=first, about=about)

    def _settled(self, number: int, there: list[Workspace]) -> None:
        chance, calendar = self._studio.chance, self._studio.calendar
        first = calendar.moment(after=calendar.began, before=calendar.ago(days=2))
        resolved = min(first + dt.timedelta(hours=chance.uniform(1, 40)), calendar.now)
        by = None if number % 3 else self._people.admin
        tag = self._studio.uuid()
        subject = f"cy_pool_{self._studio.uuid().hex[:12]}_w{tag.hex[:6]}"
        kind = K.VOLUME_WITHOUT_ROW
        sentence = f"The volume {subject} is left of a workspace that was retired."
        resolution = "Removed." if by else "The difference was gone."
        self._studio.rows.add(
            Finding(
                site=self._places.all[number % 2],
                kind=kind,
                subject=subject,
                tag_kind=Finding.TagKind.WORKSPACE,
                tag=tag,
                sentence=sentence,
                action=A.REMOVE,
                details={},
                first_seen_at=first,
                last_seen_at=resolved,
                times_seen=2,
                asked_at=resolved if by else None,
                asked_by=by,
                resolved_at=resolved,
                resolution=resolution,
                resolved_by=by,
            )
        )
        self._tell("drift_found", sentence, kind, subject, at=first)
        settled = f"{kind.label}, {subject}: {resolution}"
        self._tell("drift_resolved", settled, kind, subject, at=resolved)

    def _tell(
        self,
        event: str,
        message: str,
        kind: Finding.Kind,
        subject: str,
        *,
        at: dt.datetime,
        about: Model | None = None,
    ) -> None:
        data: dict[str, Any] = {"kind": str(kind), "subject": subject}
        about = about or self._places.home
        self._log.tell(about, event, message, at=at, task="check_site", data=data)
