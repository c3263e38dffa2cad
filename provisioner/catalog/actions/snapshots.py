"""Decide which snapshots people get: hold, withdraw, and describe snapshots."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.names import one_line
from provisioner.audit_log.actions import record_event
from provisioner.catalog.events import snapshot_withdrawn
from provisioner.catalog.freshness import change_of
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import snapshot_before
from provisioner.catalog.refusals import (
    BuildDidNotFail,
    NothingToRollBackTo,
    SnapshotInParts,
    require_offered,
)
from provisioner.engine.models import Operation
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest

LONGEST_REASON = 500
LONGEST_LABEL = 60
LONGEST_NOTES = 4000


def snapshot_hold(*, by: User, snapshot: Snapshot, reason: str) -> Snapshot:
    """Give new workspaces this snapshot until it is released, whatever is built.

    Replaces another held snapshot. A repeated call changes the reason.

    Raises: NotAllowed, InvalidRequest, SnapshotGone, SnapshotWithdrawn,
    SnapshotInParts.
    """
    permissions.require(permissions.can_change_template(by, snapshot.template))
    reason = _reason(reason)
    with transaction.atomic():
        template, row = _locked(snapshot)
        require_offered(row)
        if not row.is_complete:
            raise SnapshotInParts(snapshot=row.name)
        if (row.is_held, row.hold_reason) == (True, reason):
            return row
        others = template.snapshots.filter(held_at__isnull=False).exclude(pk=row.pk)
        others.update(held_at=None, held_by=None, hold_reason="")
        row.held_at, row.held_by, row.hold_reason = clocks.database_now(), by, reason
        row.save(update_fields=["held_at", "held_by", "hold_reason"])
        record_event(
            template,
            kind="snapshot_held",
            message=f"New workspaces get change {row.change} ({row.name}) until it is "
            "released.",
            reason=reason,
            actor=by,
            data={"snapshot": row.pk},
        )
    return row


def snapshot_release(*, by: User, snapshot: Snapshot) -> Snapshot:
    """Release a held snapshot: new workspaces get the newest good one again.

    Does nothing if it is not held.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_change_template(by, snapshot.template))
    with transaction.atomic():
        template, row = _locked(snapshot)
        if row.is_held:
            _release(row)
            record_event(
                template,
                kind="snapshot_released",
                message=f"Released change {row.change} ({row.name}): new workspaces "
                "get the newest good one again.",
                actor=by,
                data={"snapshot": row.pk},
            )
    return row


def snapshot_withdraw(*, by: User, snapshot: Snapshot, reason: str) -> Snapshot:
    """Stop offering a snapshot, and notify everyone with a workspace of it.

    The workspaces live on. The snapshot is deleted once nothing needs it. It stays
    withdrawn, with its first reason.

    Raises: NotAllowed, InvalidRequest, SnapshotGone.
    """
    permissions.require(permissions.can_change_template(by, snapshot.template))
    reason = _reason(reason)
    with transaction.atomic():
        template, row = _locked(snapshot)
        if row.is_withdrawn:
            return row
        require_offered(row)
        if row.is_held:
            _release(row)
        row.withdrawn_at, row.withdrawn_by = clocks.database_now(), by
        row.withdraw_reason = reason
        row.save(update_fields=["withdrawn_at", "withdrawn_by", "withdraw_reason"])
        event = record_event(
            template,
            kind="snapshot_withdrawn",
            message=f"Withdrew change {row.change} ({row.name}): it gives no new "
            "workspaces.",
            reason=reason,
            actor=by,
            data={"snapshot": row.pk},
        )
        snapshot_withdrawn.send(Snapshot, snapshot=row, event=event)
    return row


def snapshot_describe(
    *, by: User, snapshot: Snapshot, label: str | None = None, notes: str | None = None
) -> Snapshot:
    """Change a snapshot's label and notes; None leaves a text unchanged.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_change_template(by, snapshot.template))
    said: dict[str, str] = {}
    if label is not None:
        said["label"] = one_line(label, word="A label", most=LONGEST_LABEL)
    if notes is not None:
        said["notes"] = notes.strip()
        if len(said["notes"]) > LONGEST_NOTES or "\0" in notes:
            raise InvalidRequest(f"Notes have at most {LONGEST_NOTES:,} characters.")
    with transaction.atomic():
        template, row = _locked(snapshot)
        changed = [name for name, text in said.items() if getattr(row, name) != text]
        if changed:
            for name in changed:
                setattr(row, name, said[name])
            row.save(update_fields=changed)
            record_event(
                template,
                kind="snapshot_described",
                message=f"Changed {' and '.join(changed)} of change {row.change} "
                f"({row.name}).",
                actor=by,
                data={"snapshot": row.pk, "label": row.label},
            )
    return row


def template_roll_back(*, by: User, template: Template, build: Operation) -> Snapshot:
    """Hold the newest good snapshot from before a build that failed.

    If an earlier snapshot is held already, it stays held for its own reason.

    Raises: NotAllowed, BuildDidNotFail, NothingToRollBackTo.
    """
    permissions.require(permissions.can_change_template(by, template))
    is_its_own = build.subject_id == template.subject_id
    if not is_its_own or build.state != Operation.State.FAILED:
        raise BuildDidNotFail
    snapshot = snapshot_before(template, build=build)
    if snapshot is None:
        raise NothingToRollBackTo(template=template.name)
    if snapshot.is_held:
        return snapshot
    change = change_of(build)
    at = f" at change {change}" if change else ""
    reason = f"The build{at} failed (operation {build.pk})."
    return snapshot_hold(by=by, snapshot=snapshot, reason=reason)


def _reason(reason: str) -> str:
    reason = one_line(reason, word="A reason", most=LONGEST_REASON)
    if not reason:
        raise InvalidRequest("Give a reason. People who choose a snapshot read it.")
    return reason


def _locked(snapshot: Snapshot) -> tuple[Template, Snapshot]:
    """Lock a snapshot after its template, in the same order as a hold does."""
    templates = Template.objects.select_for_update(of=("self",), no_key=True)
    template = templates.get(pk=snapshot.template_id)
    row = Snapshot.objects.select_for_update(of=("self",), no_key=True).get(
        pk=snapshot.pk
    )
    row.template = template
    return template, row


def _release(row: Snapshot) -> None:
    row.held_at, row.held_by, row.hold_reason = None, None, ""
    row.save(update_fields=["held_at", "held_by", "hold_reason"])
