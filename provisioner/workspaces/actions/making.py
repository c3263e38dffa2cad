"""Make the row of a workspace: its snapshot, its name, and who asked for it."""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.refusals import (
    NoGoodSnapshot,
    NoSnapshot,
    require_not_archived,
    require_offered,
)
from provisioner.lib.databases import pass_one_by_one, refusing_taken
from provisioner.lib.names import LONGEST_NAME
from provisioner.lib.refusals import InvalidRequest, NameTaken
from provisioner.mirrors.queries import default_at, lock_mirror_of
from provisioner.mirrors.refusals import NothingAtSite
from provisioner.routing.queries import route_for
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace

SUGGESTIONS_TRIED = 1000
UNIQUE_NAME = "workspace_name_unique_in_site"


def one_request_at_a_time(owner: User, *, key: str = "") -> None:
    """Serialize a person's requests with the same key until the transaction ends.

    Requests without a key share a lock. Take this lock before any other.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('workspace_create'), hashtext(%s))",
            [f"{owner.pk}:{key}"],
        )


def snapshot_to_clone(
    template: Template, snapshot: Snapshot, *, site: Site
) -> Snapshot:
    """Return the given snapshot, locked so that it is not deleted at the site.

    Raises: TemplateArchived, InvalidRequest, SnapshotGone, SnapshotWithdrawn,
    SnapshotNotAtSite.
    """
    chosen = choose_snapshot(template, snapshot, site=site)
    lock_snapshot(chosen, site=site)
    return chosen


def choose_snapshot(
    template: Template, snapshot: Snapshot | None, *, site: Site, quality: str = ""
) -> Snapshot:
    """Return the given snapshot or the default one, without a lock.

    With a `quality` it is the newest of at least that.

    Raises: TemplateArchived, NoSnapshot, NoGoodSnapshot, NothingAtSite, InvalidRequest,
    SnapshotGone, SnapshotWithdrawn.
    """
    require_not_archived(template)
    if snapshot is None:
        snapshot = default_at(template, site, quality=quality)
    if snapshot is None and site.pk != template.site_id:
        raise NothingAtSite(template=template.name, site=site.name)
    if snapshot is None:
        if not Snapshot.objects.available().filter(template=template).exists():
            raise NoSnapshot(template=template.name)
        wanted = quality or template.wanted_quality
        raise NoGoodSnapshot(template=template.name, quality=wanted)
    if snapshot.template_id != template.pk:
        raise InvalidRequest("That template has no such snapshot.")
    require_offered(snapshot)
    return snapshot


def lock_snapshot(snapshot: Snapshot, *, site: Site) -> None:
    """Lock a snapshot until our row exists, as pruning deletes unreferenced ones.

    Raises: SnapshotGone, SnapshotWithdrawn, SnapshotNotAtSite.
    """
    lock_mirror_of(snapshot, site)
    locked = Snapshot.objects.select_for_update(no_key=True)
    require_offered(
        locked.only("name", "deleted_at", "withdrawn_at", "withdraw_reason").get(
            pk=snapshot.pk
        )
    )


def next_id() -> int:
    """Return the id for a new row."""
    with connection.cursor() as cursor:
        table = Workspace._meta.db_table
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [table])
        return int(cursor.fetchone()[0])


def name_for(
    pk: int, *, owner: User, template: Template, site: Site, purpose: str
) -> str:
    """Return a free name: with a small number for people, else with the id.

    Machines request many at a time, and with ids need not wait for each other's names.
    """
    if purpose == Workspace.Purpose.DEVELOPMENT:
        return free_name(owner=owner, template=template, site=site)
    suffix = f"-{pk}"
    base = _as_name(
        f"{owner.username}-{template.name}", at_most=LONGEST_NAME - len(suffix)
    )
    name = f"{base}{suffix}"
    if Workspace.objects.filter(site=site, name=name).there().exists():
        return free_name(owner=owner, template=template, site=site)
    return name


def free_name(*, owner: User, template: Template, site: Site) -> str:
    """Return owner-template, with the first number that makes it free.

    Other requests of the owner wait until the transaction ends, for the next number.
    """
    pass_one_by_one("free_name", owner.pk)
    base = _as_name(f"{owner.username}-{template.name}")
    taken = set(
        Workspace.objects.filter(site=site, name__startswith=base)
        .there()
        .values_list("name", flat=True)
    )
    candidates = (base, *(f"{base}-{n}" for n in range(2, SUGGESTIONS_TRIED)))
    for candidate in candidates:
        if candidate not in taken:
            return candidate
    raise NameTaken(name=base)


def _as_name(text: str, *, at_most: int = 34) -> str:
    """Return text as a valid name, with hyphens for invalid characters."""
    allowed = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    words = [word for word in allowed.split("-") if word]
    name = "-".join(words)
    if not name[:1].isalpha():
        name = f"w-{name}".rstrip("-")
    return name[:at_most].rstrip("-")


def insert_workspace(
    *,
    owner: User,
    template: Template,
    snapshot: Snapshot,
    site: Site,
    purpose: str,
    routed_as: str = "",
    **fields: Any,
) -> Workspace:
    """Write the row of a workspace, with its owner's account.

    Routing rules choose its Perforce server by `routed_as`, by default its purpose.

    Raises: NameTaken, RoutingRuleUnfit.
    """
    assert owner.uid is not None
    assert owner.gid is not None
    route = route_for(site, purpose=routed_as or purpose, owner=owner)
    with refusing_taken(fields["name"], constraint=UNIQUE_NAME), transaction.atomic():
        return Workspace.objects.create(
            owner=owner,
            uid=owner.uid,
            gid=owner.gid,
            p4_user=owner.perforce_name,
            site=site,
            template=template,
            snapshot=snapshot,
            purpose=purpose,
            routed_as=routed_as,
            **route.columns,
            **fields,
        )
