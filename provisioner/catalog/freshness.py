"""How far templates are behind the depot, and what their refresh depends on."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import (
    Max,
    OuterRef,
    Prefetch,
    Q,
    Subquery,
    prefetch_related_objects,
)

from provisioner.catalog import refresh_policy
from provisioner.catalog.models import (
    AT_LEAST,
    BuildParameters,
    RefreshPolicy,
    RefreshSwitch,
    ServerWatch,
    Snapshot,
    SubmittedChange,
    Template,
    TemplateWatch,
    references_of,
)
from provisioner.catalog.pins import Pin
from provisioner.engine.models import Operation, SlotBudget, Step
from provisioner.engine.results import find_result

_Touch = SubmittedChange.templates.through
# Each template has a change of its own to count from: as conditions of a QuerySet these
# take longer to put together than to answer.
CHANGES_AFTER = """
    SELECT after.template_id, array_agg(DISTINCT change.user), count(*),
        max(change.number), min(change.submitted_at),
        min(change.recorded_at), max(change.recorded_at)
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
        AS after (template_id, server_id, number)
    JOIN catalog_submittedchange_templates AS touch
        ON touch.template_id = after.template_id
    JOIN catalog_submittedchange AS change
        ON change.id = touch.submittedchange_id
        AND change.server_id = after.server_id AND change.number > after.number
    GROUP BY after.template_id
"""


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """The changes under a template's view since its newest snapshot.

    `since` is when the first of them was submitted, by the server's clock; `seen_since`
    and `seen_at` are when we saw the first and the last. `users` are their submitters,
    by name.
    """

    changes: int = 0
    newest: int | None = None
    since: dt.datetime | None = None
    seen_since: dt.datetime | None = None
    seen_at: dt.datetime | None = None
    users: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """Name the submitters: "alice", "alice and bob", "a, b, c and 4 others"."""
        shown, others = list(self.users[:3]), len(self.users) - 3
        last = f"{others} other{'s' if others > 1 else ''}" if others > 0 else ""
        names = [*shown, last] if last else shown
        return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def freshness_of_all(templates: Collection[Template]) -> dict[int, Freshness]:
    """Return the known freshness of templates, by id.

    It is unknown before the first build, and until all changes since the newest
    snapshot have been fetched. Three queries.
    """
    return freshness_since(references_of(templates))


def freshness_since(references: Mapping[int, Snapshot]) -> dict[int, Freshness]:
    """Return the known freshness of templates, from `references_of`.

    Two queries.
    """
    watched = [
        (template_id, server_id, references[template_id].change)
        for template_id, server_id, since in TemplateWatch.objects.filter(
            template__in=references
        ).values_list("template_id", "server_id", "since")
        if references[template_id].change >= since
    ]
    freshness_by_id = {template_id: Freshness() for template_id, _, _ in watched}
    if not freshness_by_id:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            CHANGES_AFTER, [list(column) for column in zip(*watched, strict=True)]
        )
        for template_id, users, *rest in cursor.fetchall():
            changes, newest_change, since, seen_since, seen_at = rest
            freshness_by_id[template_id] = Freshness(
                changes=changes,
                newest=newest_change,
                since=since,
                seen_since=seen_since,
                seen_at=seen_at,
                users=tuple(sorted(users)),
            )
    return freshness_by_id


def behind_of(snapshots: Iterable[Snapshot]) -> dict[int, int]:
    """Return how many changes each snapshot is behind, by its id.

    Only for snapshots of a single change whose distance is known. Two queries.
    """
    complete = [snapshot for snapshot in snapshots if snapshot.is_complete]
    since = dict(
        TemplateWatch.objects.filter(
            template__in={snapshot.template_id for snapshot in complete}
        ).values_list("template_id", "since")
    )
    numbers: dict[int, list[int]] = defaultdict(list)
    for template_id, number in (
        _Touch.objects.filter(template__in=since)
        .order_by("submittedchange__number")
        .values_list("template_id", "submittedchange__number")
    ):
        numbers[template_id].append(number)
    return {
        snapshot.pk: len(known) - bisect_right(known, snapshot.change)
        for snapshot in complete
        if snapshot.change >= since.get(snapshot.template_id, snapshot.change + 1)
        for known in [numbers[snapshot.template_id]]
    }


def policy_of(template: Template) -> RefreshPolicy:
    """Return the refresh policy of a template."""
    return policies_of([template])[template.pk]


def policies_of(templates: Collection[Template]) -> dict[int, RefreshPolicy]:
    """Return the refresh policies of templates, by their ids. One query."""
    rows = RefreshPolicy.objects.filter(template__in=[t.pk for t in templates])
    saved = {row.template_id: row for row in rows}
    return {t.pk: saved.get(t.pk) or RefreshPolicy() for t in templates}


def pauses_of(template: Template) -> list[str]:
    """Return the switches that stop the template's refresh, as sentences."""
    said = []
    if is_everything_paused():
        said.append("The refresh of all templates is paused.")
    server = template.site.perforce_server
    watch = getattr(server, "watch", None)
    if watch is not None and watch.is_paused:
        said.append(f"The refresh of all templates of {server} is paused.")
    return said


def server_pause_of(template: Template) -> str:
    """Return a sentence if the template's Perforce server is paused, or ""."""
    server = template.site.perforce_server
    slot_budget = getattr(server, "slot_budget", None)
    if slot_budget is None or slot_budget.paused_at is None:
        return ""
    return f"The Perforce server {server} is paused: {slot_budget.paused_reason}"


def is_everything_paused() -> bool:
    return RefreshSwitch.objects.filter(is_paused=True).exists()


def refresh_state_of(
    template: Template, *, freshness: Freshness | None
) -> refresh_policy.State:
    """Return what decides whether a template is due."""
    known = {template.pk: freshness or Freshness()}
    return refresh_states_of([template], freshness=known)[template.pk]


def refresh_states_of(
    templates: Collection[Template], *, freshness: Mapping[int, Freshness]
) -> dict[int, refresh_policy.State]:
    """Return what decides whether templates are due, by id. Few queries for many.

    Their sites and last builds, with who requested them, are loaded.
    """
    published, used_at = _published(templates), _used_at(templates)
    is_paused, paused = is_everything_paused(), _paused_servers()
    builds = [each.last_build for each in templates if each.last_build is not None]
    of_pin = Step.objects.filter(name=Pin.step)
    prefetch_related_objects(builds, Prefetch("steps", queryset=of_pin))
    states = {}
    for template in templates:
        known, last = freshness[template.pk], template.last_build
        server_id = template.site.perforce_server_id
        states[template.pk] = refresh_policy.State(
            newest=known.newest,
            published=published.get(template.pk, 0),
            behind_since=known.seen_since,
            newest_at=known.seen_at,
            is_building=template.state == Template.State.BUILDING,
            tried=_tried(last, freshness=known, server_id=server_id) if last else 0,
            tried_at=last.created_at if last else None,
            clean_tried_at=template.clean_build_at,
            used_at=used_at[template.pk],
            is_paused_elsewhere=is_paused or server_id in paused,
        )
    return states


def _paused_servers() -> set[int]:
    """Return the servers whose templates are not refreshed, or where all is paused."""
    watches = ServerWatch.objects.filter(is_paused=True)
    budgets = SlotBudget.objects.filter(paused_at__isnull=False)
    return {row.server_id for row in watches} | {row.server_id for row in budgets}


def _published(templates: Collection[Template]) -> dict[int, int]:
    """Return the change of the newest snapshot that is good enough, by template.

    A template whose older snapshot is held is still built, once per change.
    """
    is_enough = (
        Q(template__wanted_quality=wanted, quality__in=enough)
        for wanted, enough in AT_LEAST.items()
    )
    snapshots = Snapshot.objects.available().complete().filter(template__in=templates)
    good = snapshots.filter(reduce(or_, is_enough)).order_by()
    return dict(good.values_list("template").annotate(change=Max("change")))


def _tried(build: Operation, *, freshness: Freshness, server_id: int) -> int:
    """Return the newest change that need not be built after the last build.

    If somebody built an older change, they skipped the newer ones known then: those are
    no reason for another build.
    """
    was_chosen = BuildParameters.of(build).change and not build.requested_by.is_service
    if was_chosen and freshness.newest is not None:
        passed_over = SubmittedChange.objects.filter(
            server=server_id, number=freshness.newest, recorded_at__lte=build.created_at
        )
        if passed_over.exists():
            return freshness.newest
    return change_of(build)


def change_of(build: Operation) -> int:
    """Return the change of a build, 0 if it ended before that was known."""
    if asked := BuildParameters.of(build).change:
        return asked
    pin = find_result(build, Pin)
    return pin.change if pin else 0


def _used_at(templates: Collection[Template]) -> dict[int, dt.datetime | None]:
    """Return when somebody last requested a workspace of each, or a build."""
    workspaces: Any = apps.get_model("workspaces", "Workspace").objects
    got = workspaces.filter(template=OuterRef("pk"), is_pooled=False)
    asked = Operation.objects.filter(
        subject=OuterRef("subject"), requested_by__is_service=False
    )
    rows = Template.objects.filter(pk__in=[each.pk for each in templates])
    return {
        pk: max(filter(None, (got_at, asked_at)), default=None)
        for pk, got_at, asked_at in rows.order_by().values_list(
            "pk",
            Subquery(got.order_by("-created_at").values("created_at")[:1]),
            Subquery(asked.order_by("-created_at").values("created_at")[:1]),
        )
    }
