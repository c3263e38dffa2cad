"""Which templates and snapshots a person may see, and what a new workspace gets."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from provisioner.accounts.models import User
from provisioner.catalog.models import AT_LEAST, Snapshot, SnapshotQuerySet, Template
from provisioner.gateways.perforce.specs import parse_client_spec


def in_scope(user: User, *, by: str) -> Q:
    """Return the condition for the templates of the token that a person asks with.

    `by` leads to the template's id.
    """
    if user.scope is None or user.scope.template_ids is None:
        return Q()
    return Q(**{f"{by}__in": user.scope.template_ids})


def available_snapshots() -> SnapshotQuerySet:
    """Return published snapshots, newest first."""
    return Snapshot.objects.available()


def default_snapshot(template: Template, *, quality: str = "") -> Snapshot | None:
    """Return the snapshot that a new workspace of the template gets, or None.

    It is the newest with at least this quality, the template's where none is named.
    """
    enough = AT_LEAST[quality or template.wanted_quality]
    complete = available_snapshots().complete().filter(template=template)
    return complete.filter(quality__in=enough).first()


def reference_snapshot(template: Template) -> Snapshot | None:
    """Return what a template is compared with: its default, or else its newest."""
    newest = available_snapshots().complete().filter(template=template)
    return default_snapshot(template) or newest.first()


def templates_to_choose_from(user: User) -> QuerySet[Template]:
    """Return the same templates as `templates_visible_to`, with nothing else read."""
    templates = Template.objects.filter(in_scope(user, by="pk"))
    return templates.select_related("site__perforce_server")


def templates_visible_to(user: User) -> QuerySet[Template]:
    """Return all templates, each with `default_snapshot_id`.

    None: it was not built yet or, with `has_snapshots`, none is as good as it asks for.
    """
    newest = Snapshot.objects.default_first().filter(template=OuterRef("pk"))
    return templates_to_choose_from(user).annotate(
        default_snapshot_id=Subquery(newest.values("pk")[:1]),
        default_change=Subquery(newest.values("change")[:1]),
        default_created_at=Subquery(newest.values("created_at")[:1]),
        default_have_count=Subquery(newest.values("have_count")[:1]),
        default_quality=Subquery(newest.values("quality")[:1]),
        has_snapshots=Exists(available_snapshots().filter(template=OuterRef("pk"))),
    )


def snapshots_visible_to(user: User) -> QuerySet[Snapshot]:
    """Return all published snapshots with their templates."""
    snapshots = available_snapshots().select_related("template__site")
    return snapshots.filter(in_scope(user, by="template"))


def snapshots_for_trials(template: Template) -> list[Snapshot]:
    """Return the snapshots from which a change can be reached by what was submitted.

    The whole view is at one change, and it is the view that the newest of them has.
    """
    snapshots = list(available_snapshots().complete().filter(template=template))
    views = [parse_client_spec(s.client_spec).view for s in snapshots]
    return [s for s, view in zip(snapshots, views, strict=True) if view == views[0]]
