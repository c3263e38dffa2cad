"""Tell people once that a volume fills up, and once again when it is nearly full.

What the capacity sweep has saved is compared with the last level of each volume, so no
request is made. A level that was told is kept as a row until the volume has room again.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.gateways.ontap.types import LEAST_BYTES_OF_AN_INODE
from provisioner.lib.fullness import BACK_PERCENT, WARNING_PERCENT, level_of
from provisioner.mirrors.models import Mirror
from provisioner.notify.volumes import say_template_fills, say_workspace_fills
from provisioner.sites.models import MeasuredVolume, Site
from provisioner.storage.models import FillingVolume
from provisioner.workspaces.models import LEASED, Workspace

Subject = Workspace | Template | Mirror | WorkspaceCopy

_NEAR = WARNING_PERCENT - BACK_PERCENT

_IS_FILLING = MeasuredVolume.used_at_least(_NEAR) | Q(
    used_inodes__gte=F("actual_size_bytes") * _NEAR / 100 / LEAST_BYTES_OF_AN_INODE
)
"""Whether a level may hold, for templates and workspaces. None is never so."""


def note_filling(site: Site, *, now: dt.datetime) -> None:
    """Tell owners and administrators of each threshold that a volume crossed.

    Safe to repeat: each crossing is told once. A volume that has room again is only
    recorded.
    """
    known = {row.subject: row.level for row in _known_at(site)}
    filling = [
        *Workspace.objects.filter(_IS_FILLING, site=site, state__in=LEASED),
        *Template.objects.filter(_IS_FILLING, site=site),
        *Mirror.objects.filter(site=site).select_related("template", "site"),
        *WorkspaceCopy.objects.filter(
            MeasuredVolume.used_at_least(_NEAR), site=site
        ).select_related("workspace__owner", "site"),
    ]
    for subject in {*filling, *known}:
        fullness = subject.fullness
        last = known.get(subject, 0)
        is_used = fullness is not None and _is_used(subject)
        percent = fullness.percent if fullness is not None and is_used else 0
        level = level_of(percent, last=last)
        if level != last:
            _change_level(subject, level, last=last, now=now)


def _is_used(subject: Subject) -> bool:
    """Return whether something is written to its volume, now or later."""
    if isinstance(subject, Workspace):
        return subject.state in LEASED
    return isinstance(subject, Template) or subject.gets_snapshots


def filling_volumes(user: User) -> QuerySet[FillingVolume]:
    """Return the volumes that fill up. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(user))
    return FillingVolume.objects.select_related(
        *("workspace__owner", "workspace__site", "template__site"),
        *("mirror__site", "mirror__template"),
        *("workspacecopy__site", "workspacecopy__workspace"),
    )


def _known_at(site: Site) -> list[FillingVolume]:
    of_site = Q(workspace__site=site) | Q(template__site=site) | Q(mirror__site=site)
    of_site |= Q(workspacecopy__site=site)
    rows = FillingVolume.objects.filter(of_site)
    return list(
        rows.select_related(
            *("workspace__owner", "template", "mirror__template", "mirror__site"),
            *("workspacecopy__workspace__owner", "workspacecopy__site"),
        )
    )


@transaction.atomic
def _change_level(subject: Subject, level: int, *, last: int, now: dt.datetime) -> None:
    row: dict[str, Any] = {subject._meta.model_name or "": subject}
    copy = subject if isinstance(subject, WorkspaceCopy) else None
    volume = f"The volume of its copy at {copy.site.name}" if copy else "Its volume"
    about = subject.workspace if isinstance(subject, WorkspaceCopy) else subject
    if not level:
        FillingVolume.objects.filter(**row).delete()
        record_event(
            about,
            kind="volume_has_room",
            message=f"{volume} has room again.",
        )
        return
    FillingVolume.objects.update_or_create(
        **row, defaults={"level": level, "crossed_at": now}
    )
    if level < last:
        return
    assert subject.fullness is not None
    said = f"{volume} is {subject.fullness.sentence}"
    record_event(about, kind="volume_filling", message=said)
    if isinstance(about, Workspace):
        say_workspace_fills(about, copy=copy, sentence=said, now=now)
        return
    mirror = about if isinstance(about, Mirror) else None
    template = about if isinstance(about, Template) else about.template
    people = {template.owner, *User.objects.filter(is_staff=True, is_active=True)}
    say_template_fills(template, people, mirror=mirror, sentence=said, now=now)
