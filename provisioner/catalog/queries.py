"""Which templates and snapshots a person may see, and what a new workspace gets."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value

from provisioner.accounts.models import User
from provisioner.catalog.models import (
    PinnedTemplate,
    Snapshot,
    Template,
)
from provisioner.engine.models import Operation
from provisioner.gateways.perforce.specs import parse_client_spec


def in_scope(user: User, *, by: str) -> Q:
    """Return the condition for templates in the current token's scope.

    `by` is the path to the template's id.
    """
    if user.scope is None or user.scope.template_ids is None:
        return Q()
    return Q(**{f"{by}__in": user.scope.template_ids})


def is_in_scope(user: User, template_id: int) -> bool:
    """Return whether a template is in the current token's scope."""
    ids = None if user.scope is None else user.scope.template_ids
    return ids is None or template_id in ids


def named_template(value: str) -> Q:
    """Return the condition for rows of the template with this id or name."""
    if value.isascii() and value.isdecimal():
        return Q(template_id=int(value))
    return Q(template__name=value)


def default_snapshot(template: Template, *, quality: str = "") -> Snapshot | None:
    """Return the snapshot that a new workspace of the template gets, or None.

    It is the held one, else the newest of at least the wanted quality: the given one,
    or the template's.
    """
    snapshots = Snapshot.objects.filter(template=template)
    return snapshots.default_first(at_least=quality).first()


def default_without(snapshot: Snapshot) -> Snapshot | None:
    """Return the snapshot that new workspaces would get without this one, or None."""
    others = Snapshot.objects.filter(template=snapshot.template_id)
    return others.exclude(pk=snapshot.pk).default_first().first()


def snapshot_before(template: Template, *, build: Operation) -> Snapshot | None:
    """Return the newest snapshot before a build with the wanted quality, or None."""
    earlier = Snapshot.objects.filter(
        template=template, created_at__lt=build.created_at
    )
    return earlier.default_first(at_least=template.wanted_quality).first()


def reference_snapshot(template: Template) -> Snapshot | None:
    """Return the snapshot to compare a template with: its default, else its newest."""
    return Snapshot.objects.reference_first().filter(template=template).first()


def defaults_among(references: Mapping[int, Snapshot]) -> dict[int, Snapshot]:
    """Return those of `references_of` that new workspaces get."""
    return {
        template_id: snapshot
        for template_id, snapshot in references.items()
        if vars(snapshot)["is_default"]
    }


def templates_to_choose_from(user: User) -> QuerySet[Template]:
    """Return the same templates as `templates_visible_to`, without its annotations."""
    templates = Template.objects.filter(in_scope(user, by="pk"))
    return templates.select_related("site__perforce_server")


def is_pinned_by(user: User) -> Exists | Value:
    """Return the expression for whether a person has pinned a template.

    A scoped token has no pins, and learns nothing of its owner's.
    """
    if user.scope is not None:
        return Value(False)
    return Exists(PinnedTemplate.objects.filter(person=user, template=OuterRef("pk")))


def templates_ever(user: User) -> QuerySet[Template]:
    """Return the templates to choose from and those that were deleted."""
    templates = Template.with_deleted.filter(in_scope(user, by="pk"))
    # Few are routed or archived: by and to whom is read only for those.
    return templates.select_related("site__perforce_server", "owner")


def is_archived(templates: QuerySet[Template], which: str) -> QuerySet[Template]:
    """Keep templates that are not archived; "only": those that are, "all": both."""
    if which == "all":
        return templates
    return templates.filter(archived_at__isnull=which != "only")


def templates_offered_to(user: User) -> QuerySet[Template]:
    """Return templates as `templates_visible_to`, without archived ones."""
    return is_archived(templates_visible_to(user), "")


def templates_visible_to(user: User) -> QuerySet[Template]:
    """Return all templates, each with `has_snapshots`: somebody can get one of it."""
    available = Snapshot.objects.available().filter(template=OuterRef("pk"))
    return templates_to_choose_from(user).annotate(has_snapshots=Exists(available))


def by_default_snapshot(templates: QuerySet[Template]) -> QuerySet[Template]:
    """Let templates be ordered by `default_created_at`, None without a default."""
    default = Snapshot.objects.default_first().filter(template=OuterRef("pk"))
    newest = Subquery(default.values("created_at")[:1])
    return templates.alias(default_created_at=newest)


def snapshots_visible_to(user: User) -> QuerySet[Snapshot]:
    """Return all published snapshots with their templates, including withdrawn ones."""
    snapshots = Snapshot.objects.there().select_related(
        "template__site", "held_by", "withdrawn_by"
    )
    return snapshots.filter(in_scope(user, by="template"))


def snapshots_for_bisection(template: Template) -> list[Snapshot]:
    """Return the snapshots from which a change can be reached by known changes.

    Each has its whole view at one change, and the view of the newest of them.
    """
    snapshots = list(Snapshot.objects.available().complete().filter(template=template))
    views = [parse_client_spec(s.client_spec).view for s in snapshots]
    return [s for s, view in zip(snapshots, views, strict=True) if view == views[0]]
