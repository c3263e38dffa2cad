"""Change lease policies, after a preview of the affected workspaces."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from django.db import connection, transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.leases import queries
from provisioner.leases.actions.leases import LONGEST_SECONDS, end_moved, set_lease
from provisioner.leases.models import LeasePolicy
from provisioner.leases.refusals import PreviewStale
from provisioner.leases.warnings import plan_warnings
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.times import duration_text, exact, recorded
from provisioner.workspaces.models import LEASED, Workspace

MOST_WARNINGS = 14


class Terms(TypedDict):
    """How long workspaces live, as in `queries.Policy`."""

    default_seconds: int | None
    maximum_seconds: int | None
    trash_seconds: int
    warn_seconds: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Affected:
    """One affected workspace, before and after a change."""

    workspace: Workspace
    before: queries.Deadline
    after: queries.Deadline

    @property
    def moves(self) -> bool:
        return self.before.ends_at != self.after.ends_at

    @property
    def sentence(self) -> str:
        """What changes for it, as a sentence."""
        said = []
        if self.moves and self.before.ends_at is None:
            assert self.after.ends_at is not None
            said.append(f"gets a lease until {exact(self.after.ends_at)}")
        elif self.moves:
            assert self.before.ends_at is not None
            assert self.after.ends_at is not None
            said.append(
                f"ends on {exact(self.after.ends_at)} instead of "
                f"{exact(self.before.ends_at)}"
            )
        before, after = (
            [moment.at for moment in deadline.warns_at]
            for deadline in (self.before, self.after)
        )
        if before != after:
            said.append(
                "mails on " + ", ".join(exact(at) for at in after)
                if after
                else "no mail before its end"
            )
        if self.before.trash_seconds != self.after.trash_seconds:
            said.append(
                f"stays {duration_text(self.after.trash_seconds)} in the trash"
                if self.after.trash_seconds
                else "is purged without time in the trash"
            )
        return "; ".join(said)


@dataclass(frozen=True, kw_only=True)
class PolicyPreview:
    """The effect of a change, as of now.

    `seal` identifies the change and the affected workspaces: saving with it does
    exactly what was shown. `kept` counts workspaces kept without an end, which no
    policy changes.
    """

    policy: queries.Policy
    affected: tuple[Affected, ...]
    kept: int
    seal: str

    @property
    def moving(self) -> int:
        """How many deadlines change."""
        return sum(one.moves for one in self.affected)


def lease_policy_preview(
    *,
    by: User,
    template: Template | None,
    purpose: str,
    **terms: Unpack[Terms],
) -> PolicyPreview:
    """Return which workspaces a policy would affect, and how. Changes nothing.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_manage_templates(by))
    row = LeasePolicy(template=template, purpose=purpose, **terms)
    policy = queries.policy_of_row(row)
    _check(purpose, policy)
    return _preview(
        policy, template=template, purpose=purpose, now=clocks.database_now()
    )


def lease_policy_save(
    *,
    by: User,
    template: Template | None,
    purpose: str,
    seal: str = "",
    **terms: Unpack[Terms],
) -> PolicyPreview:
    """Save a policy; it also applies to existing workspaces.

    Deadlines beyond a shortened maximum move in, but never closer than the first
    warning; others stay. With a preview's seal, refused if the affected workspaces
    have changed since.

    Raises: NotAllowed, InvalidRequest, PreviewStale.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        _one_change_at_a_time()
        preview = lease_policy_preview(
            by=by, template=template, purpose=purpose, **terms
        )
        _check_seal(preview, seal)
        row, _ = LeasePolicy.objects.update_or_create(
            template=template, purpose=purpose, defaults=_as_data(preview.policy)
        )
        _apply(preview, by=by, row=row, kind="lease_policy_saved", said="Saved.")
    return preview


def lease_policy_remove_preview(*, by: User, row: LeasePolicy) -> PolicyPreview:
    """Return which workspaces would be affected if the next wider policy applied.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_manage_templates(by))
    return _preview(
        _policy_without(row),
        template=row.template,
        purpose=row.purpose,
        now=clocks.database_now(),
    )


def lease_policy_remove(*, by: User, row: LeasePolicy, seal: str = "") -> PolicyPreview:
    """Remove a policy, so that the next wider one applies.

    Raises: NotAllowed, PreviewStale.
    """
    with transaction.atomic():
        _one_change_at_a_time()
        preview = lease_policy_remove_preview(by=by, row=row)
        _check_seal(preview, seal)
        LeasePolicy.objects.filter(pk=row.pk).delete()
        _apply(preview, by=by, row=row, kind="lease_policy_removed", said="Removed.")
    return preview


def _policy_without(row: LeasePolicy) -> queries.Policy:
    policies = queries.saved_policies()
    rows = dict(policies.rows)
    rows.pop((row.template_id, row.purpose), None)
    return queries.Policies(rows).of(row.template_id, row.purpose)


def _preview(
    policy: queries.Policy,
    *,
    template: Template | None,
    purpose: str,
    now: dt.datetime,
) -> PolicyPreview:
    policies = queries.saved_policies()
    covered = _covered(policies, template=template, purpose=purpose)
    affected = []
    for workspace in covered:
        if workspace.keep_reason:
            continue
        before = queries.deadline_of(workspace, policies.of_workspace(workspace), now)
        ends_at = policy.pulled_in(workspace.expires_at, now=now)
        if ends_at == workspace.expires_at and policy == replace(
            policies.of_workspace(workspace), source=policy.source
        ):
            continue
        workspace.expires_at = ends_at
        after = queries.deadline_of(workspace, policy, now)
        one = Affected(workspace=workspace, before=before, after=after)
        if one.sentence:
            affected.append(one)
    return PolicyPreview(
        policy=policy,
        affected=tuple(affected),
        kept=sum(bool(workspace.keep_reason) for workspace in covered),
        seal=_seal(policy, affected, template=template, purpose=purpose),
    )


def _covered(
    policies: queries.Policies, *, template: Template | None, purpose: str
) -> list[Workspace]:
    """Return the workspaces for which the policy is or would be the nearest one."""
    workspaces = (
        Workspace.objects.filter(purpose=purpose, state__in=LEASED, is_pooled=False)
        .select_related("owner", "template", "site")
        .order_by("expires_at", "pk")
    )
    if template is not None:
        return list(workspaces.filter(template=template))
    own = [key[0] for key in policies.rows if key[0] and key[1] == purpose]
    return list(workspaces.exclude(template__in=own))


def _seal(
    policy: queries.Policy,
    affected: Sequence[Affected],
    *,
    template: Template | None,
    purpose: str,
) -> str:
    """Return a digest of the change and the affected workspaces, without times."""
    whom = [(one.workspace.pk, one.moves) for one in affected]
    text = repr((template and template.pk, str(purpose), policy, sorted(whom)))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _check_seal(preview: PolicyPreview, seal: str) -> None:
    if seal and seal != preview.seal:
        raise PreviewStale(count=len(preview.affected))


def _apply(
    preview: PolicyPreview, *, by: User, row: LeasePolicy, kind: str, said: str
) -> None:
    """Change the deadlines and mails of affected workspaces, each with its event."""
    now = clocks.database_now()
    for one in preview.affected:
        workspace = (
            Workspace.objects.select_for_update(of=("self",))
            .select_related("owner", "template", "site")
            .get(pk=one.workspace.pk)
        )
        if workspace.state not in LEASED or workspace.keep_reason:
            continue  # meanwhile
        before = workspace.expires_at
        ends_at = preview.policy.pulled_in(before, now=now)
        if ends_at == before:
            plan_warnings(workspace, preview.policy, now=now)
            continue
        set_lease(workspace, ends_at=ends_at, policy=preview.policy, now=now)
        assert ends_at is not None
        record_event(
            workspace,
            kind="lease_policy_applied",
            message=f"The lease policy changed: its lease now ends on "
            f"{recorded(ends_at)}.",
            actor=by,
            data=end_moved(before, ends_at),
        )
    record_event(
        row,
        kind=kind,
        message=f"{said} How long workspaces live: {preview.moving} deadlines moved.",
        actor=by,
        data={"policy": _as_data(preview.policy), "template": row.template_id},
    )


def _as_data(policy: queries.Policy) -> dict[str, object]:
    return {
        "default_seconds": policy.default_seconds,
        "maximum_seconds": policy.maximum_seconds,
        "trash_seconds": policy.trash_seconds,
        "warn_seconds": list(policy.warn_seconds),
    }


def _one_change_at_a_time() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('lease_policy'))")


def _check(purpose: str, policy: queries.Policy) -> None:
    """Refuse policies that would end workspaces immediately, or make no sense.

    Raises: InvalidRequest.
    """
    if purpose not in Workspace.Purpose.values:
        raise InvalidRequest(f"There is no purpose “{purpose}”.")
    spans = [policy.default_seconds, policy.maximum_seconds, *policy.warn_seconds]
    if any(span is not None and not 1 <= span <= LONGEST_SECONDS for span in spans):
        raise InvalidRequest(f"Times are from 1 to {LONGEST_SECONDS} seconds.")
    if not 0 <= policy.trash_seconds <= LONGEST_SECONDS:
        raise InvalidRequest(f"The trash keeps 0 to {LONGEST_SECONDS} seconds.")
    if policy.maximum_seconds is not None:
        if policy.default_seconds is None:
            raise InvalidRequest("A maximum needs a default: leases have to end.")
        if policy.default_seconds > policy.maximum_seconds:
            raise InvalidRequest("The default is longer than the maximum.")
    if len(policy.warn_seconds) > MOST_WARNINGS:
        raise InvalidRequest(
            f"At most {MOST_WARNINGS} mails before an end are possible."
        )
