"""Asking for a workspace: one request makes one, however often it arrives."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.workspaces import leases, notices, states
from provisioner.workspaces.actions.leases import end_of_first_lease
from provisioner.workspaces.actions.names import check_name
from provisioner.workspaces.admission import check_admission
from provisioner.workspaces.errors import (
    AccountIncomplete,
    InvalidRequest,
    NameTaken,
    NoGoodSnapshot,
    NoSnapshot,
    RequestKeyReused,
    SnapshotGone,
)
from provisioner.workspaces.models import Operation, Snapshot, Template, Workspace
from provisioner.workspaces.queries import available_snapshots, snapshot_to_offer
from provisioner.workspaces.tasks import start_operation

SUGGESTIONS_TRIED = 1000


def workspace_create(
    *,
    by: User,
    template: Template,
    name: str = "",
    purpose: str = Workspace.Purpose.DEVELOPMENT,
    snapshot: Snapshot | None = None,
    quality: str = "",
    wants_reconcile: bool = False,
    lease_seconds: int | None = None,
    request_key: str = "",
) -> Workspace:
    """Ask for a workspace of a template's snapshot; its default where none is named.

    With a `quality` (built, tested) it is the newest of at least that. Without a name
    one is made from the owner's and the template's. Asking again with the same
    `request_key` answers with the first request's workspace. Its lease is the usual one
    of its policy, or lasts `lease_seconds`.

    Raises: InvalidRequest, LeaseTooLong, AccountIncomplete, NoSnapshot, NoGoodSnapshot,
    SnapshotGone, NameTaken, RequestKeyReused, LimitReached.
    """
    _check_quality(quality, snapshot=snapshot)
    if by.uid is None or by.gid is None:
        raise AccountIncomplete(username=by.username)
    if purpose not in Workspace.Purpose.values:
        raise InvalidRequest(f"There is no purpose “{purpose}”.")
    if name:
        check_name(name)
    with transaction.atomic():
        _one_request_at_a_time(by)
        earlier = _same_request(
            by=by,
            template=template,
            name=name,
            purpose=purpose,
            snapshot=snapshot,
            quality=quality,
            wants_reconcile=wants_reconcile,
            key=request_key,
        )
        if earlier is not None:
            return earlier
        now = timezone.now()
        expires_at = end_of_first_lease(
            template=template, purpose=purpose, lease_seconds=lease_seconds, now=now
        )
        snapshot = _snapshot_to_clone(template, snapshot, quality=quality)
        check_admission(by=by, template=template, snapshot=snapshot)
        workspace = _insert_workspace(
            owner=by,
            site=template.site,
            template=template,
            snapshot=snapshot,
            name=name or _free_name(owner=by, template=template),
            purpose=purpose,
            wants_reconcile=wants_reconcile,
            request_key=request_key,
            uid=by.uid,
            gid=by.gid,
            p4_user=by.perforce_name,
            expires_at=expires_at,
        )
        policy = leases.policy_for(template, purpose)
        notices.plan_warnings(workspace, policy, now=now)
        states.record_event(
            workspace,
            kind="workspace_requested",
            message=f"Asked for a clone of {template.name} at change "
            f"{snapshot.change}.",
            actor=by,
        )
        start_operation(Operation.Kind.PROVISION, by=by, workspace=workspace)
    return workspace


def _check_quality(quality: str, *, snapshot: Snapshot | None) -> None:
    if not quality:
        return
    if snapshot is not None:
        raise InvalidRequest("Choose a snapshot or a quality, one of the two.")
    if quality not in Template.WantedQuality.values:
        raise InvalidRequest(f"There is no quality “{quality}” to ask for.")


def _snapshot_to_clone(
    template: Template, snapshot: Snapshot | None, *, quality: str
) -> Snapshot:
    if snapshot is None:
        snapshot = snapshot_to_offer(template, quality=quality)
    if snapshot is None:
        if not available_snapshots().filter(template=template).exists():
            raise NoSnapshot(template=template.name)
        wanted = quality or template.wanted_quality
        raise NoGoodSnapshot(template=template.name, quality=wanted)
    if snapshot.template_id != template.pk:
        raise InvalidRequest("This snapshot is not one of that template.")
    # Held until our row is there: pruning takes only what no row refers to.
    snapshot = Snapshot.objects.select_for_update(no_key=True).get(pk=snapshot.pk)
    if snapshot.deleted_at is not None:
        raise SnapshotGone(snapshot=snapshot.name)
    return snapshot


def _one_request_at_a_time(owner: User) -> None:
    """Let requests of one person pass one by one until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('workspace_create'), %s)", [owner.pk]
        )


def _same_request(
    *,
    by: User,
    template: Template,
    name: str,
    purpose: str,
    snapshot: Snapshot | None,
    quality: str,
    wants_reconcile: bool,
    key: str,
) -> Workspace | None:
    """Return the workspace that an earlier, identical request made, or None.

    Identical is: the same key; or, where neither a key nor a name tells two requests
    of a person apart (a second click), the same template, snapshot and comparison
    while the first is still being made. Machines ask for many alike, so build-only
    requests need a key.
    """
    mine = Workspace.objects.select_related("site", "template").filter(owner=by)
    if key:
        earlier = mine.filter(request_key=key).first()
        if earlier is None:
            return None
        is_same = (
            earlier.template_id == template.pk
            and earlier.purpose == purpose
            and (not name or earlier.name == name)
            and (snapshot is None or earlier.snapshot_id == snapshot.pk)
        )
        if not is_same:
            raise RequestKeyReused
        return earlier
    if name or purpose != Workspace.Purpose.DEVELOPMENT:
        return None
    return mine.filter(
        template=template,
        snapshot=snapshot or snapshot_to_offer(template, quality=quality),
        purpose=purpose,
        wants_reconcile=wants_reconcile,
        state=Workspace.State.PROVISIONING,
        request_key="",
    ).first()


def _free_name(*, owner: User, template: Template) -> str:
    """Return owner-template, with the first number that makes it free."""
    base = _as_name(f"{owner.username}-{template.name}")
    taken = set(
        Workspace.objects.filter(site=template.site, name__startswith=base)
        .exclude(state=Workspace.State.RETIRED)
        .values_list("name", flat=True)
    )
    candidates = (base, *(f"{base}-{n}" for n in range(2, SUGGESTIONS_TRIED)))
    for candidate in candidates:
        if candidate not in taken:
            return candidate
    raise NameTaken(name=base)


def _as_name(text: str) -> str:
    """Return text as a name: what the rule does not allow becomes a hyphen."""
    allowed = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    words = [word for word in allowed.split("-") if word]
    name = "-".join(words)
    if not name[:1].isalpha():
        name = f"w-{name}".rstrip("-")
    return name[:34].rstrip("-")


def _insert_workspace(**fields: Any) -> Workspace:
    try:
        with transaction.atomic():
            return Workspace.objects.create(**fields)
    except IntegrityError as error:
        if "workspace_name_unique_in_site" in str(error):
            raise NameTaken(name=fields["name"]) from error
        raise
