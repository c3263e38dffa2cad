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
from provisioner.gateways.ontap.types import LEAST_BYTES_OF_AN_INODE
from provisioner.lib.fullness import BACK_PERCENT, WARNING_PERCENT, level_of
from provisioner.notify.volumes import say_template_fills, say_workspace_fills
from provisioner.sites.models import Site
from provisioner.storage.models import FillingVolume
from provisioner.workspaces.models import LEASED, Workspace

_NEAR = (WARNING_PERCENT - BACK_PERCENT) / 100

_IS_FILLING = Q(used_bytes__gte=F("actual_size_bytes") * _NEAR) | Q(
    used_inodes__gte=F("actual_size_bytes") * _NEAR / LEAST_BYTES_OF_AN_INODE
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
    ]
    for subject in {*filling, *known}:
        fullness = subject.fullness
        last = known.get(subject, 0)
        is_there = isinstance(subject, Template) or subject.state in LEASED
        percent = fullness.percent if fullness is not None and is_there else 0
        level = level_of(percent, last=last)
        if level != last:
            _change_level(subject, level, last=last, now=now)


def filling_volumes(user: User) -> QuerySet[FillingVolume]:
    """Return the volumes that fill up. Raises: NotAllowed."""
    permissions.require(permissions.can_administer(user))
    return FillingVolume.objects.select_related(
        "workspace__owner", "workspace__site", "template__site"
    )


def _known_at(site: Site) -> list[FillingVolume]:
    of_site = Q(workspace__site=site) | Q(template__site=site)
    rows = FillingVolume.objects.filter(of_site)
    return list(rows.select_related("workspace", "template"))


@transaction.atomic
def _change_level(
    subject: Workspace | Template, level: int, *, last: int, now: dt.datetime
) -> None:
    is_workspace = isinstance(subject, Workspace)
    about: dict[str, Any] = {"workspace" if is_workspace else "template": subject}
    if not level:
        FillingVolume.objects.filter(**about).delete()
        record_event(
            subject, kind="volume_has_room", message="Its volume has room again."
        )
        return
    FillingVolume.objects.update_or_create(
        **about, defaults={"level": level, "crossed_at": now}
    )
    if level < last:
        return
    assert subject.fullness is not None
    said = f"Its volume is {subject.fullness.sentence}"
    record_event(subject, kind="volume_filling", message=said)
    if isinstance(subject, Workspace):
        say_workspace_fills(subject, sentence=said, now=now)
    else:
        people = {subject.owner, *User.objects.filter(is_staff=True, is_active=True)}
        say_template_fills(subject, people, sentence=said, now=now)
