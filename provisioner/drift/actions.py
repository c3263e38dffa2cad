"""Request drift checks and the repairs of their findings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Case, Q, QuerySet, When
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.drift.models import DriftCheck, FarSide, Finding
from provisioner.drift.refusals import FindingNotOurs, FindingResolved
from provisioner.engine.deferring import defer, defer_once
from provisioner.engine.queues import PERFORCE, STORAGE
from provisioner.lib import clocks
from provisioner.sites.models import Site

# The tasks are in sweeps/checks.py, which comes after actions: jobs name them.
CHECK_TASK = "check_site"
RESOLVE_TASK = "resolve_finding"

QUEUES = {FarSide.ONTAP: STORAGE, FarSide.PERFORCE: PERFORCE}

_PARENTS_FIRST = Case(
    When(tag_kind=Finding.TagKind.TEMPLATE, then=0),
    When(tag_kind=Finding.TagKind.MIRROR, then=1),
    default=2,
)


def drift_check_start(*, by: User) -> int:
    """Queue a drift check of every site; return the number of jobs.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        sites = list(Site.objects.all())
        for site in sites:
            for system in FarSide:
                DriftCheck.objects.update_or_create(
                    site=site,
                    system=system,
                    defaults={"asked_at": clocks.database_now()},
                )
        record_event(
            None,
            kind="drift_check_requested",
            message="Requested a drift check.",
            actor=by,
        )
        queue_drift_checks(sites)
    return len(sites) * len(FarSide)


def queue_drift_checks(sites: Iterable[Site]) -> None:
    """Queue a check of both systems of each site, unless it is queued already."""
    for site in sites:
        for system in FarSide:
            name = f"drift.{site.pk}.{system}"
            job = app.configure_task(
                CHECK_TASK, queue=QUEUES[system], lock=name, queueing_lock=name
            )
            defer_once(job, site_id=site.pk, system=str(system))


def finding_resolve(*, by: User, finding: Finding) -> Finding:
    """Request the repair of a finding. It checks again before acting.

    Raises: NotAllowed, FindingResolved, FindingNotOurs (there is no repair).
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        finding = (
            Finding.objects.select_for_update(of=("self",))
            .select_related("site", "workspace", "template", "mirror", "copy")
            .get(pk=finding.pk)
        )
        if finding.resolved_at is not None:
            raise FindingResolved(subject=finding.subject)
        if finding.action == Finding.Action.NONE:
            raise FindingNotOurs(subject=finding.subject)
        if finding.asked_at is not None:
            return finding
        finding.asked_at, finding.asked_by = clocks.database_now(), by
        finding.status_message = ""
        finding.save(update_fields=["asked_at", "asked_by", "status_message"])
        system = Finding.Kind(finding.kind).system
        record_event(
            finding.row or finding.site,
            kind="drift_repair_requested",
            message=f"{finding}: asked to {finding.action_title.lower()}.",
            actor=by,
            data={"kind": finding.kind, "subject": finding.subject},
        )
        resolve = app.configure_task(
            RESOLVE_TASK,
            queue=QUEUES[system],
            lock=f"drift.{finding.site_id}.{system}",
        )
        defer(resolve, finding_id=finding.pk)
    return finding


def findings_adopt(*, by: User) -> int:
    """Request adoption of everything missing from the database; return the count.

    Each is checked again before anything is written.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    asked_for = 0
    for finding in adoptable():
        with contextlib.suppress(FindingResolved, FindingNotOurs):  # meanwhile
            finding_resolve(by=by, finding=finding)
            asked_for += 1
    return asked_for


def adoptable() -> QuerySet[Finding]:
    """Return the open findings of objects that are missing from the database.

    Snapshots come first, then templates and mirrors, since workspaces are cloned from
    them.
    """
    volumes = Q(
        kind=Finding.Kind.VOLUME_WITHOUT_ROW,
        workspace=None,
        template=None,
        mirror=None,
        copy=None,
    )
    return Finding.objects.filter(
        volumes | Q(kind=Finding.Kind.SNAPSHOT_WITHOUT_ROW),
        action=Finding.Action.ADOPT,
        resolved_at=None,
    ).order_by("kind", _PARENTS_FIRST, "tag", "pk")
