"""Announce maintenance, and withdraw announcements."""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.names import one_line
from provisioner.audit_log.actions import record_event
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.times import recorded
from provisioner.maintenance.models import LONGEST_MESSAGE, Maintenance


@transaction.atomic
def maintenance_announce(
    *, by: User, message: str, starts_at: dt.datetime, ends_at: dt.datetime
) -> Maintenance:
    """Announce maintenance: every page shows it until it ends.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    message = one_line(message, word="The message", most=LONGEST_MESSAGE)
    if not message:
        raise InvalidRequest("Say what is maintained, and what will not work.")
    if ends_at <= starts_at:
        raise InvalidRequest.at(
            "ends_at", "It ends before it begins. Give a later end."
        )
    if ends_at <= clocks.database_now():
        raise InvalidRequest.at(
            "ends_at", "It would already be over. Choose a later end."
        )
    row = Maintenance.objects.create(
        message=message, starts_at=starts_at, ends_at=ends_at, announced_by=by
    )
    _record(row, by=by, kind="maintenance_announced", did="Announced")
    return row


@transaction.atomic
def maintenance_withdraw(*, by: User, maintenance: Maintenance) -> None:
    """Withdraw an announcement, as it is over or canceled.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    _record(maintenance, by=by, kind="maintenance_withdrawn", did="Withdrew")
    maintenance.delete()


def _record(row: Maintenance, *, by: User, kind: str, did: str) -> None:
    span = f"{recorded(row.starts_at)} to {recorded(row.ends_at)}"
    record_event(
        None,
        kind=kind,
        message=f"{did} maintenance from {span}: {row.message}",
        actor=by,
        data={
            "starts_at": row.starts_at.isoformat(),
            "ends_at": row.ends_at.isoformat(),
        },
    )
