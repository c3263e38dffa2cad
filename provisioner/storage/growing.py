"""Grow the full volumes of workspaces, where the policy of their template says so."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import structlog
from django.db import transaction

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.catalog.volume_policies import grown_size, policies_of
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.types import is_same_size
from provisioner.lib.fullness import URGENT_PERCENT
from provisioner.lib.sizes import size_text
from provisioner.notify.volumes import say_workspace_fills
from provisioner.sites.models import AggregateSpace, MeasuredVolume, Site
from provisioner.storage.models import Growth
from provisioner.workspaces.models import Workspace

log = structlog.get_logger(__name__)


def grow_full_volumes(site: Site, *, now: dt.datetime) -> None:
    """Grow the volumes of development workspaces at a site that are full, as measured.

    Each growth is recorded once, also where ONTAP's answer was lost: the measurement
    then says that the volume grew. Safe to repeat: one that grew is less full. One
    whose aggregate lacks the room stays, and so does one that ONTAP refuses: the next
    measurement tries it again.
    """
    _settle(site, now=now)
    planned = list(_planned(site))
    if not planned:
        return
    Growth.objects.bulk_create(planned, ignore_conflicts=True)
    ontap = registry.ontap(site)
    for growth in planned:
        uuid, size = growth.workspace.volume_uuid, growth.to_bytes
        try:
            volume = ontap.set_volume_size(uuid, size_bytes=size)
        except GatewayError as error:
            about = {"workspace": growth.workspace_id, **error.log_context()}
            log.warning("volume_not_grown", **about)
        else:
            _record(growth, size_bytes=volume.size_bytes, now=now)


def _settle(site: Site, *, now: dt.datetime) -> None:
    """Record the growths whose answer was lost; forget those that did not happen."""
    open_ones = Growth.objects.filter(workspace__site=site)
    for growth in open_ones.select_related("workspace__owner"):
        seen = growth.workspace.actual_size_bytes or 0
        if seen > growth.to_bytes or is_same_size(seen, growth.to_bytes):
            _record(growth, size_bytes=seen, now=now)
        else:
            growth.delete()


def _planned(site: Site) -> Iterator[Growth]:
    """Yield what the policies grow, as far as the aggregates have room. Three queries.

    An aggregate that was not measured refuses none.
    """
    policies = policies_of(site)
    if not any(policy.clone_grow_percent for policy in policies):
        return
    room = {each.name: each.room_bytes for each in _spaces(site)}
    full = Workspace.objects.filter(
        MeasuredVolume.used_at_least(URGENT_PERCENT),
        site=site,
        state=Workspace.State.READY,
        purpose=Workspace.Purpose.DEVELOPMENT,
        is_pooled=False,
    )
    for workspace in full.select_related("template", "owner", "site").order_by("pk"):
        fullness = workspace.fullness
        assert fullness is not None
        before = fullness.size_bytes
        after = grown_size(workspace.template, policies, size_bytes=before)
        place = workspace.aggregate or site.aggregate
        if after is None or room.get(place, after) < after - before:
            continue
        if place in room:
            room[place] -= after - before
        yield Growth(
            workspace=workspace,
            from_bytes=before,
            to_bytes=after,
            percent=fullness.percent_of_bytes,
        )


def _spaces(site: Site) -> list[AggregateSpace]:
    return list(site.aggregates.select_related("site"))


@transaction.atomic
def _record(growth: Growth, *, size_bytes: int, now: dt.datetime) -> None:
    """Record that a volume grew and tell its owner, once."""
    workspace = growth.workspace
    deleted, _ = Growth.objects.filter(workspace=workspace).delete()
    if not deleted:
        return
    Workspace.objects.filter(pk=workspace.pk).update(
        actual_size_bytes=size_bytes, volume_size_bytes=size_bytes
    )
    said = (
        f"Its volume was {growth.percent} % full. It grew from "
        f"{size_text(growth.from_bytes)} to {size_text(size_bytes)}."
    )
    record_event(workspace, kind="volume_grown", message=said, actor=system_user())
    say_workspace_fills(workspace, sentence=said, now=now)
