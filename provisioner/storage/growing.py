"""Grow the full volumes of workspaces, where the policy of their template says so."""

from __future__ import annotations

import datetime as dt

import structlog
from django.db import transaction
from django.db.models import F

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.catalog.volume_policies import grown_size, policies_of
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib.fullness import URGENT_PERCENT
from provisioner.lib.sizes import size_text
from provisioner.notify.volumes import say_workspace_fills
from provisioner.sites.models import Site
from provisioner.sites.queries import find_space
from provisioner.workspaces.models import Workspace

_IS_FULL = {"used_bytes__gte": F("actual_size_bytes") * (URGENT_PERCENT / 100)}

log = structlog.get_logger(__name__)


def grow_full_volumes(site: Site, *, now: dt.datetime) -> None:
    """Grow the volumes of development workspaces at a site that are full, as measured.

    Safe to repeat: one that grew is less full. One whose aggregate lacks the room
    stays, and so does one that ONTAP refuses: the next measurement tries it again.
    """
    policies = policies_of(site)
    if not any(policy.clone_grow_percent for policy in policies):
        return
    full = Workspace.objects.filter(
        site=site,
        state=Workspace.State.READY,
        purpose=Workspace.Purpose.DEVELOPMENT,
        is_pooled=False,
        **_IS_FULL,
    )
    for workspace in full.select_related("template", "owner", "site"):
        before = workspace.actual_size_bytes or 0
        after = grown_size(workspace.template, policies, size_bytes=before)
        if after is None:
            continue
        space = find_space(site, aggregate=workspace.aggregate)
        if space is None or space.room_bytes >= after - before:
            _grow(workspace, size_bytes=after, now=now)


def _grow(workspace: Workspace, *, size_bytes: int, now: dt.datetime) -> None:
    ontap, full = registry.ontap(workspace.site), workspace.fullness
    assert full is not None
    try:
        volume = ontap.set_volume_size(workspace.volume_uuid, size_bytes=size_bytes)
    except GatewayError as error:
        log.warning("volume_not_grown", workspace=workspace.pk, **error.log_context())
        return
    said = (
        f"Its volume was {full.percent_of_bytes} % full. It grew from "
        f"{size_text(full.size_bytes)} to {size_text(volume.size_bytes)}."
    )
    with transaction.atomic():
        Workspace.objects.filter(pk=workspace.pk).update(
            actual_size_bytes=volume.size_bytes
        )
        record_event(workspace, kind="volume_grown", message=said, actor=system_user())
        say_workspace_fills(workspace, sentence=said, now=now)
