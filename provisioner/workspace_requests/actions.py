"""Asking for a workspace: one request makes one, however often it arrives."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, connection, transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import available_snapshots, default_snapshot
from provisioner.engine import clocks
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.engine.tasks import start_operation
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.heartbeats import check_heartbeat
from provisioner.leases.actions.leases import end_of_first_lease
from provisioner.lib.names import LONGEST_NAME
from provisioner.lib.refusals import (
    AccountIncomplete,
    InvalidRequest,
    NameTaken,
    NoGoodSnapshot,
    NoSnapshot,
    SnapshotGone,
)
from provisioner.lib.typed_names import check_name
from provisioner.limits.admission import (
    check_admission,
    check_claim,
    pass_one_by_one,
)
from provisioner.notify import workspaces
from provisioner.workspace_requests.claim import (
    find_pool,
    hand_out,
    lock_member,
    why_cold,
)
from provisioner.workspace_requests.repeat import (
    find_first_request,
    find_second_click,
    fingerprint_of,
    one_request_at_a_time,
)
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import client_type_for

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
    heartbeat_seconds: int | None = None,
    request_key: str = "",
) -> Workspace:
    """Ask for a workspace of a template's snapshot; its default where none is named.

    One that lies ready in a warm pool is handed out at once; else it is made.

    With a `quality` (built, tested) it is the newest of at least that. Without a name
    one is made from the owner's and the template's. Asking again with the same
    `request_key` answers with the first request's workspace. Its lease is the usual one
    of its policy, or lasts `lease_seconds`; it ends before that if its job said nothing
    for `heartbeat_seconds`. A scoped token of `by` bounds all of it.

    Raises: InvalidRequest, OutOfScope, LeaseTooLong, AccountIncomplete, NoSnapshot,
    NoGoodSnapshot, SnapshotGone, PurposeNotSupported, NameTaken, RequestKeyReused,
    LimitReached.
    """
    _check_request(by=by, purpose=purpose, name=name)
    _check_quality(quality, snapshot=snapshot)
    check_heartbeat(heartbeat_seconds)
    permissions.require_in_scope(by, template=template, purpose=purpose)
    fingerprint = fingerprint_of(
        template=template.pk,
        name=name,
        purpose=str(purpose),
        snapshot=snapshot and snapshot.pk,
        quality=quality,
        reconcile=wants_reconcile,
        lease=lease_seconds,
        heartbeat=heartbeat_seconds,
    )
    with transaction.atomic():
        one_request_at_a_time(by, key=request_key)
        earlier = None
        if request_key:
            earlier = find_first_request(
                by=by, key=request_key, fingerprint=fingerprint
            )
        elif not name and purpose == Workspace.Purpose.DEVELOPMENT:
            earlier = find_second_click(
                by=by,
                template=template,
                snapshot=snapshot or default_snapshot(template, quality=quality),
                wants_reconcile=wants_reconcile,
            )
        if earlier is not None:
            earlier.was_asked_for_before = True
            return earlier
        now = clocks.database_now()
        policy = lease_queries.policy_for(template, purpose)
        expires_at = end_of_first_lease(
            by=by, policy=policy, lease_seconds=lease_seconds, now=now
        )
        snapshot = _snapshot_to_choose(template, snapshot, quality=quality)
        client_type = client_type_for(purpose, server=template.site.perforce_server)
        workspace, pool, cold_reason = None, None, ""
        if not wants_reconcile:
            workspace = lock_member(
                by=by,
                template=template,
                purpose=purpose,
                snapshot=snapshot,
                client_type=client_type,
                now=now,
            )
        if workspace is None:
            pool = find_pool(by=by, template=template, purpose=purpose)
            cold_reason = why_cold(
                pool,
                template=template,
                snapshot=snapshot,
                client_type=client_type,
                wants_reconcile=wants_reconcile,
                now=now,
            )
            _hold(snapshot)
            check_admission(by=by, template=template, snapshot=snapshot)
        else:
            check_claim(by=by)
        pk = workspace.pk if workspace is not None else _next_id()
        name = name or _made_up_name(pk, owner=by, template=template, purpose=purpose)
        asked: dict[str, Any] = {
            "token": by.token,
            "name": name,
            "request_key": request_key,
            "request_fingerprint": fingerprint if request_key else "",
            "expires_at": expires_at,
            "heartbeat_seconds": heartbeat_seconds,
        }
        is_warm = workspace is not None
        if workspace is not None:
            hand_out(workspace, now=now, **asked)
        else:
            workspace = insert_workspace(
                **asked,
                pk=pk,
                owner=by,
                site=template.site,
                template=template,
                snapshot=snapshot,
                purpose=purpose,
                client_type=client_type,
                wants_reconcile=wants_reconcile,
                pool=pool,
                cold_reason=cold_reason,
                uid=by.uid,
                gid=by.gid,
                p4_user=by.perforce_name,
            )
        workspaces.plan_first_warnings(workspace, policy, now=now)
        if is_warm:
            _record_claim(workspace, by=by)
        else:
            engine_states.record_event(
                workspace,
                kind="workspace_requested",
                message=f"Asked for a clone of {template.name} at change "
                f"{snapshot.change}.",
                actor=by,
            )
            start_operation(Operation.Kind.PROVISION, by=by, workspace=workspace)
    return workspace


def _record_claim(workspace: Workspace, *, by: User) -> None:
    engine_states.record_event(
        workspace,
        kind="workspace_claimed",
        message=f"Asked for a clone of {workspace.template.name} at change "
        f"{workspace.snapshot.change}, and got one that lay ready.",
        actor=by,
        data={
            "pool": workspace.pool_id,
            "made_as": workspace.made_as,
            "seconds_saved": workspace.seconds_saved,
        },
    )


def _check_request(*, by: User, purpose: str, name: str) -> None:
    if by.uid is None or by.gid is None:
        raise AccountIncomplete(username=by.username)
    if purpose not in Workspace.Purpose.values:
        raise InvalidRequest(f"There is no purpose “{purpose}”.")
    if name:
        check_name(name)


def _check_quality(quality: str, *, snapshot: Snapshot | None) -> None:
    if not quality:
        return
    if snapshot is not None:
        raise InvalidRequest("Choose a snapshot or a quality, one of the two.")
    if quality not in Template.WantedQuality.values:
        raise InvalidRequest(f"There is no quality “{quality}” to ask for.")


def snapshot_to_clone(
    template: Template, snapshot: Snapshot | None, *, quality: str = ""
) -> Snapshot:
    """Return a snapshot, locked so that it stays; the default where none is named.

    With a `quality` it is the newest of at least that.

    Raises: NoSnapshot, NoGoodSnapshot, InvalidRequest, SnapshotGone.
    """
    chosen = _snapshot_to_choose(template, snapshot, quality=quality)
    _hold(chosen)
    return chosen


def _snapshot_to_choose(
    template: Template, snapshot: Snapshot | None, *, quality: str
) -> Snapshot:
    """Return the same, but not locked: what lies ready holds its snapshot itself.

    Raises: NoSnapshot, NoGoodSnapshot, InvalidRequest.
    """
    if snapshot is None:
        snapshot = default_snapshot(template, quality=quality)
    if snapshot is None:
        if not available_snapshots().filter(template=template).exists():
            raise NoSnapshot(template=template.name)
        wanted = quality or template.wanted_quality
        raise NoGoodSnapshot(template=template.name, quality=wanted)
    if snapshot.template_id != template.pk:
        raise InvalidRequest("This snapshot is not one of that template.")
    return snapshot


def _hold(snapshot: Snapshot) -> None:
    """Lock a snapshot until our row is there: pruning takes what no row refers to.

    Raises: SnapshotGone.
    """
    locked = Snapshot.objects.select_for_update(no_key=True).only("deleted_at")
    if locked.get(pk=snapshot.pk).deleted_at is not None:
        raise SnapshotGone(snapshot=snapshot.name)


def _next_id() -> int:
    """Return the id that a new row is to have."""
    with connection.cursor() as cursor:
        table = Workspace._meta.db_table
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [table])
        return int(cursor.fetchone()[0])


def _made_up_name(pk: int, *, owner: User, template: Template, purpose: str) -> str:
    """Return a free name: for people with a small number, else with the id.

    Machines ask for many at a time: so none waits for the name of another.
    """
    if purpose == Workspace.Purpose.DEVELOPMENT:
        return free_name(owner=owner, template=template)
    suffix = f"-{pk}"
    base = _as_name(
        f"{owner.username}-{template.name}", at_most=LONGEST_NAME - len(suffix)
    )
    name = f"{base}{suffix}"
    same = Workspace.objects.filter(site=template.site, name=name).exclude(
        state=Workspace.State.RETIRED
    )
    return free_name(owner=owner, template=template) if same.exists() else name


def free_name(*, owner: User, template: Template) -> str:
    """Return owner-template, with the first number that makes it free.

    Others of the same owner wait until the transaction ends, to get the next one.
    """
    pass_one_by_one("free_name", owner.pk)
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


def _as_name(text: str, *, at_most: int = 34) -> str:
    """Return text as a name: what the rule does not allow becomes a hyphen."""
    allowed = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    words = [word for word in allowed.split("-") if word]
    name = "-".join(words)
    if not name[:1].isalpha():
        name = f"w-{name}".rstrip("-")
    return name[:at_most].rstrip("-")


def insert_workspace(**fields: Any) -> Workspace:
    """Write a workspace's row.

    Raises: NameTaken.
    """
    try:
        with transaction.atomic():
            return Workspace.objects.create(**fields)
    except IntegrityError as error:
        if "workspace_name_unique_in_site" in str(error):
            raise NameTaken(name=fields["name"]) from error
        raise
