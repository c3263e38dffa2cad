"""Which copies there are, which are due, and what stands against a transfer."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, When

from provisioner.accounts.models import User
from provisioner.catalog.queries import in_scope
from provisioner.copies.models import CopiedSnapshot, CopyRule, WorkspaceCopy
from provisioner.mirrors.models import FORMER_HOMES, Mirror
from provisioner.mirrors.queries import can_be_cloned
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to

RETRIED_AFTER = dt.timedelta(minutes=10)
AT_ONCE = 4
"""How many copies are transferred to a site at the same time."""

HAS_BASE = can_be_cloned(
    template="workspace__template", snapshot="workspace__snapshot", site="site"
)
"""The copies whose site has the snapshot that the workspace is a clone of."""

IS_SENT = Exists(
    WorkspaceCopy.objects.filter(workspace=OuterRef("pk")).exclude(relationship_uuid="")
)
"""The workspaces that SnapMirror copies: ONTAP does not split such volumes."""

_STAYS = (
    Workspace.State.READY,
    Workspace.State.RETIRING,
    Workspace.State.RESTORING,
    Workspace.State.FAILED,
)


def copies_visible_to(user: User) -> QuerySet[WorkspaceCopy]:
    """Return the copies of the workspaces that a person may see."""
    return WorkspaceCopy.objects.filter(
        workspace__in=workspaces_visible_to(user).order_by().values("pk")
    ).select_related(
        "workspace__owner", "workspace__site", "workspace__snapshot", "site"
    )


def rules_visible_to(user: User) -> QuerySet[CopyRule]:
    """Return the rules of templates that a person may see."""
    return CopyRule.objects.filter(in_scope(user, by="template")).select_related(
        "template", "site", "second_site"
    )


def rule_at(mirror: Mirror) -> CopyRule | None:
    """Return the rule that copies workspaces to or from a mirror's site, or None."""
    rules = CopyRule.objects.filter(template=mirror.template_id)
    for at_site in (Q(site=mirror.site_id), Q(second_site=mirror.site_id)):
        rule = rules.filter(at_site).select_related("site", "second_site").first()
        if rule is not None:
            return rule
    return None


def workspaces_without_copy(
    rule: CopyRule,
) -> Iterator[tuple[Site, QuerySet[Workspace]]]:
    """Yield the sites of a rule, with the workspaces that have no copy there yet."""
    at_site = Q(site=rule.site_id)
    wanted = Workspace.objects.filter(
        template=rule.template_id,
        purpose__in=rule.purposes,
        is_pooled=False,
        state=Workspace.State.READY,
    ).order_by("pk")
    for site, lives in ((rule.site, ~at_site), (rule.second_site, at_site)):
        copies = WorkspaceCopy.objects.filter(workspace=OuterRef("pk"), site=site)
        yield site, wanted.filter(~Exists(copies), lives)


def rule_for(copy: WorkspaceCopy) -> CopyRule | None:
    """Return the rule that wants a copy; of several the one that copies most often."""
    return _rule_among(copy, CopyRule.objects.filter(template=_template_of(copy)))


def _template_of(copy: WorkspaceCopy) -> int:
    return copy.workspace.template_id


def _rule_among(copy: WorkspaceCopy, rules: Iterable[CopyRule]) -> CopyRule | None:
    wanting = [
        rule
        for rule in rules
        if copy.workspace.purpose in rule.purposes
        and rule.destination_of(copy.workspace) == copy.site_id
    ]
    return min(wanting, key=lambda rule: rule.every_minutes, default=None)


def superfluous_copies(*, now: dt.datetime) -> Iterator[WorkspaceCopy]:
    """Yield resting copies that nobody wants: of what is put away, or of no rule."""
    rules = _rules_by_template()
    for copy in _resting(now=now):
        is_wanted = (
            _rule_among(copy, rules[_template_of(copy)]) is not None
            and copy.workspace.state in _STAYS
            and not copy.is_released
        )
        if not is_wanted:
            yield copy


def _rules_by_template() -> defaultdict[int, list[CopyRule]]:
    rules = defaultdict[int, list[CopyRule]](list)
    for rule in CopyRule.objects.all():
        rules[rule.template_id].append(rule)
    return rules


def _resting(*, now: dt.datetime) -> QuerySet[WorkspaceCopy]:
    states = (WorkspaceCopy.State.WAITING, WorkspaceCopy.State.READY)
    failed = Q(state=WorkspaceCopy.State.FAILED, failed_at__lt=now - RETRIED_AFTER)
    return (
        WorkspaceCopy.objects.filter(Q(state__in=states) | failed)
        .select_related("workspace__site", "workspace__snapshot", "site")
        .order_by("due_at", "pk")
    )


def due_copies(*, now: dt.datetime) -> Iterator[WorkspaceCopy]:
    """Yield the copies whose transfer is due, as many as may run at each site."""
    running = WorkspaceCopy.objects.filter(state=WorkspaceCopy.State.TRANSFERRING)
    room: dict[int, int] = {}
    rules = _rules_by_template()
    due = _resting(now=now).filter(
        HAS_BASE | ~Q(relationship_uuid=""),
        due_at__lte=now,
        is_released=False,
        workspace__state=Workspace.State.READY,
    )
    for copy in due:
        if copy.workspace.is_independent and not copy.relationship_uuid:
            continue
        if _rule_among(copy, rules[_template_of(copy)]) is None:
            continue
        if copy.site_id not in room:
            room[copy.site_id] = AT_ONCE - running.filter(site=copy.site).count()
        if room[copy.site_id] > 0:
            room[copy.site_id] -= 1
            yield copy


@dataclass(frozen=True, kw_only=True)
class Place:
    """What there is for a copy at its site.

    `has_base`: the snapshot that the workspace is a clone of. `is_home`: the template
    is built there. `mirror_state`: of the template's mirror there, "" for none.
    """

    has_base: bool
    is_home: bool
    mirror_state: str


def places_of(copies: Sequence[WorkspaceCopy]) -> dict[int, Place]:
    """Return what there is for each copy at its site, by the copy's id; one query."""
    mirrors = Mirror.objects.filter(
        template=OuterRef("workspace__template"), site=OuterRef("site")
    )
    found = WorkspaceCopy.with_deleted.filter(pk__in=[copy.pk for copy in copies])
    rows = found.annotate(
        has_base=Case(When(HAS_BASE, then=True), default=False),
        mirror_state=Subquery(mirrors.values("state")[:1]),
    ).values_list(
        *("pk", "has_base", "mirror_state", "site", "workspace__template__site")
    )
    return {
        pk: Place(has_base=has_base, is_home=site == home, mirror_state=state or "")
        for pk, has_base, state, site, home in rows.order_by()
    }


def obstacle_of(copy: WorkspaceCopy, place: Place) -> str:
    """Return what keeps a copy from its next transfer, "" for nothing known."""
    if copy.state == WorkspaceCopy.State.FAILED:
        return copy.status_message
    if copy.relationship_uuid:
        return ""
    site, snapshot = copy.site.name, copy.workspace.snapshot.name
    if copy.workspace.is_independent:
        return (
            "It is independent of its snapshot, so all of it would be sent. It is not "
            "copied."
        )
    if place.has_base:
        return copy.status_message
    if place.is_home:
        return (
            f"Its snapshot {snapshot} is not at {site}, so it is not copied. Transfer "
            "your work to a workspace of a newer snapshot."
        )
    if place.mirror_state in (Mirror.State.GIVEN_UP, ""):
        return (
            f"The template has no mirror at {site} any more. An administrator creates "
            "one, or has workspaces copied to another site."
        )
    if place.mirror_state in FORMER_HOMES:
        return (
            f"{site} is a former home of the template. Copies begin when an "
            "administrator has re-established it."
        )
    return (
        f"Its snapshot {snapshot} is not at {site}. An administrator or the template's "
        "owner transfers it to the mirror."
    )


def has_base(copy: WorkspaceCopy) -> bool:
    """Return whether the copy's site has the snapshot that the workspace is of."""
    return WorkspaceCopy.with_deleted.filter(HAS_BASE, pk=copy.pk).exists()


def last_arrived(copy: WorkspaceCopy) -> CopiedSnapshot | None:
    """Return the newest snapshot that arrived at the copy's site, or None."""
    arrived = copy.snapshots.filter(arrived_at__isnull=False)
    return arrived.order_by(F("arrived_at").desc()).first()


def copies_at_mirror(mirror: Mirror) -> QuerySet[WorkspaceCopy]:
    """Return the copies that are clones of a mirror."""
    return WorkspaceCopy.objects.filter(
        workspace__template=mirror.template_id, site=mirror.site_id
    )
