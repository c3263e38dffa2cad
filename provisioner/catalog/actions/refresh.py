"""Refresh policies of templates, and the switches that pause refreshes."""

from __future__ import annotations

from django.db import transaction
from django.forms import model_to_dict

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog import freshness
from provisioner.catalog.models import (
    RefreshPolicy,
    RefreshSwitch,
    ServerWatch,
    Template,
)
from provisioner.catalog.refusals import RefreshUnchanged
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.schedules import read_schedule
from provisioner.sites.models import PerforceServer

LONGEST_SECONDS = 366 * 86400
LONGEST_DAYS = 3660


def refresh_policy_save(
    *,
    by: User,
    template: Template,
    mode: str,
    quiet_seconds: int = 120,
    every_seconds: int = 1800,
    cron: str = "",
    clean_cron: str = "",
    unused_days: int | None = None,
    is_paused: bool = False,
) -> RefreshPolicy:
    """Save when a template is refreshed automatically.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_manage_templates(by))
    if mode not in RefreshPolicy.Mode.values:
        raise InvalidRequest(f"There is no refresh mode called “{mode}”.")
    if not all(0 <= s <= LONGEST_SECONDS for s in (quiet_seconds, every_seconds)):
        raise InvalidRequest(f"Times are from 0 to {LONGEST_SECONDS} seconds.")
    if unused_days is not None and not 1 <= unused_days <= LONGEST_DAYS:
        raise InvalidRequest(f"Days without use are from 1 to {LONGEST_DAYS}.")
    cron, clean_cron = cron.strip(), clean_cron.strip()
    if cron or mode == RefreshPolicy.Mode.CRON:
        cron = read_schedule(cron, field="cron")
    if clean_cron:
        clean_cron = read_schedule(clean_cron, field="clean_cron")
    fields = {
        "mode": mode,
        "quiet_seconds": quiet_seconds,
        "every_seconds": every_seconds,
        "cron": cron,
        "clean_cron": clean_cron,
        "unused_days": unused_days,
        "is_paused": is_paused,
    }
    with transaction.atomic():
        rows = RefreshPolicy.objects.select_for_update().filter(template=template)
        before = rows.values(*fields).first() or dict.fromkeys(fields)
        row, _ = RefreshPolicy.objects.update_or_create(
            template=template,
            defaults={**fields, "changed_at": clocks.database_now()},
        )
        record_event(
            template,
            kind="refresh_policy_changed",
            message=f"Refreshed: {row.get_mode_display().lower()}"
            f"{' (paused)' if is_paused else ''}.",
            actor=by,
            data=changes_between(before, fields),
        )
    return row


def template_refresh_pause(
    *, by: User, template: Template, is_paused: bool
) -> RefreshPolicy:
    """Pause or resume the refresh of one template; its policy does not change.

    Raises: NotAllowed, RefreshUnchanged.
    """
    permissions.require(permissions.can_manage_templates(by))
    policy = freshness.policy_of(template)
    if policy.is_paused == is_paused:
        how = "paused already" if is_paused else "not paused"
        raise RefreshUnchanged(template=template.name, how=how)
    fields = model_to_dict(policy, exclude=["template", "changed_at", "id"])
    fields["is_paused"] = is_paused
    return refresh_policy_save(by=by, template=template, **fields)


def refresh_pause(
    *, by: User, is_paused: bool, server: PerforceServer | None = None
) -> None:
    """Pause or resume all refreshes, or those of one server along with its polls.

    A running build continues.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        if server is None:
            RefreshSwitch.objects.update_or_create(
                pk=1, defaults={"is_paused": is_paused}
            )
        else:
            ServerWatch.objects.update_or_create(
                server=server, defaults={"is_paused": is_paused, "next_poll_at": None}
            )
        record_event(
            server,
            kind="refresh_paused" if is_paused else "refresh_resumed",
            message=f"{'Paused' if is_paused else 'Resumed'} the refresh of "
            f"{'its templates' if server else 'all templates'}.",
            actor=by,
        )
