"""Repairs of findings: check, act, check again.

Each repair reads the remote system and the row again, and does nothing if the finding
no longer holds. Nothing is forced: ONTAP keeps what has clones, Perforce what has work.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import transaction

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.drift.models import Finding
from provisioner.drift.repairs import mirrors, perforce, storage
from provisioner.drift.repairs.adopting import adopt_snapshot
from provisioner.drift.repairs.evidence import CannotRepair
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.lib.refusals import StateChanged, StepRefused

log = structlog.get_logger(__name__)

Kind = Finding.Kind
Action = Finding.Action


def repair(finding: Finding, *, by: User | None) -> None:
    """Repair a finding and resolve it, or record why that failed."""
    key = (finding.kind, finding.action)
    others = OF_COPIES if finding.is_of_copy else {}
    act = (OF_MIRRORS if finding.is_of_mirror else others).get(key) or REPAIRS.get(key)
    if act is None:
        return
    try:
        resolution = act(finding)
    except (GatewayError, StepRefused, CannotRepair, StateChanged) as error:
        sentence = str(error)
        log.warning("finding_not_repaired", finding_id=finding.pk, error=sentence)
        with transaction.atomic():
            Finding.objects.filter(pk=finding.pk).update(
                asked_at=None, status_message=sentence
            )
            if by is not None or finding.status_message != sentence:
                record_event(
                    finding.row or finding.site,
                    kind="drift_repair_failed",
                    message=f"{finding.subject}: {sentence}",
                    actor=by,
                )
        return
    with transaction.atomic():
        settle(finding, resolution=resolution, by=by)


def settle(finding: Finding, *, resolution: str, by: User | None) -> None:
    """Close a finding, once, with its event."""
    closed = Finding.objects.filter(pk=finding.pk, resolved_at=None).update(
        resolved_at=clocks.database_now(),
        resolution=resolution,
        resolved_by=by,
        asked_at=None,
        status_message="",
    )
    if closed:
        record_event(
            finding.row or finding.site,
            kind="drift_resolved",
            message=f"{finding.get_kind_display()}, {finding.subject}: {resolution}",
            actor=by,
            data={"kind": finding.kind, "subject": finding.subject},
        )


REPAIRS: dict[tuple[str, str], Callable[[Finding], str]] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): storage.remove_volume,
    (Kind.VOLUME_WITHOUT_ROW, Action.ADOPT): storage.adopt_volume,
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): storage.finish_lost_volume,
    (Kind.VOLUME_TAG_COPIED, Action.REMOVE): storage.remove_tag,
    (Kind.VOLUME_UNTAGGED, Action.FINISH): storage.put_tag_back,
    (Kind.VOLUME_OFFLINE, Action.FINISH): storage.bring_online,
    (Kind.VOLUME_SIZE_DIFFERS, Action.FINISH): storage.resize,
    (Kind.VOLUME_SETTINGS_DIFFER, Action.FINISH): storage.restore_settings,
    (Kind.JUNCTION_DIFFERS, Action.FINISH): storage.finish_junction,
    (Kind.SNAPSHOT_WITHOUT_ROW, Action.REMOVE): storage.remove_snapshot,
    (Kind.SNAPSHOT_WITHOUT_ROW, Action.ADOPT): adopt_snapshot,
    (Kind.ROW_WITHOUT_SNAPSHOT, Action.FINISH): storage.finish_lost_snapshot,
    (Kind.ROW_WITHOUT_RELATIONSHIP, Action.FINISH): mirrors.create_again,
    (Kind.CLIENT_WITHOUT_ROW, Action.REMOVE): perforce.remove_client,
    (Kind.ROW_WITHOUT_CLIENT, Action.FINISH): perforce.finish_lost_client,
    (Kind.CLIENT_TAG_COPIED, Action.REMOVE): perforce.remove_client_tag,
    (Kind.CLIENT_DIFFERS, Action.FINISH): perforce.finish_client,
    (Kind.CLIENT_VIEW_DIFFERS, Action.FINISH): perforce.put_view_back,
    (Kind.JOB_UNATTENDED, Action.REMOVE): storage.cancel_job,
}
OF_MIRRORS: dict[tuple[str, str], Callable[[Finding], str]] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): mirrors.remove_volume,
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): mirrors.create_again,
    (Kind.ROW_WITHOUT_SNAPSHOT, Action.FINISH): mirrors.mark_snapshots_gone,
}
"""What is repaired in another way for a mirror than for others."""

OF_COPIES: dict[tuple[str, str], Callable[[Finding], str]] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): mirrors.remove_volume,
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): mirrors.copy_again,
    (Kind.ROW_WITHOUT_RELATIONSHIP, Action.FINISH): mirrors.copy_again,
}
"""Likewise for a workspace's copy."""
