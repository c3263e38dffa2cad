"""Save daily samples of template limits and team quotas, for forecasts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from django.contrib.postgres.aggregates import RegrSlope
from django.db.models import Count, F, FloatField, Func

from provisioner.lib.limits import (
    CloneLimitReached,
    InodesLow,
    SnapshotLimitReached,
)
from provisioner.lib.trends import Trend
from provisioner.limits.admission import team_limits
from provisioner.limits.models import LimitDay
from provisioner.limits.queries import SiteLimits, limits_of_sites
from provisioner.limits.tallies import Tallies

OF_TEMPLATES = {CloneLimitReached.code, SnapshotLimitReached.code, InodesLow.code}
DAYS_KEPT = 28

# A whole number: as seconds since 1970 it is numeric, which the database adds slowly.
_NUMBER_OF_DAY = Func(
    F("day"),
    template="(%(expressions)s - DATE '2000-01-01')",
    output_field=FloatField(),
)


class Key(NamedTuple):
    """The key of a limit of a template or team, by name.

    Names of templates are unique per site; a team is at none.
    """

    site_id: int | None
    subject: str
    code: str


Trends = Mapping[Key, Trend]


def keep_limit_days(*, today: dt.date) -> None:
    """Save the day's samples so far, in UTC, and delete old ones.

    Safe to repeat. Few queries, however many templates and teams. Limits of mirrors
    have the same codes and are not saved, nor are quotas of people, who often reach
    theirs.
    """
    tallies = Tallies()
    sites = limits_of_sites(tallies)
    ids: dict[tuple[int | None, str], int] = {
        (each.site_id, each.name): each.pk for each in tallies.templates
    }
    LimitDay.objects.bulk_create(
        [
            LimitDay(
                template_id=ids[key.site_id, key.subject],
                code=key.code,
                day=today,
                used=used,
            )
            for key, used in _of_templates(sites)
            if (key.site_id, key.subject) in ids
        ],
        update_conflicts=True,
        unique_fields=("template", "code", "day"),
        update_fields=("used",),
    )
    teams = {team.name: team.pk for team in tallies.teams}
    LimitDay.objects.bulk_create(
        [
            LimitDay(
                team_id=teams[quota.subject],
                code=quota.code,
                day=today,
                used=quota.used,
            )
            for quota in team_limits(tallies)
            if quota.used
        ],
        update_conflicts=True,
        unique_fields=("team", "code", "day"),
        update_fields=("used",),
    )
    too_old = today - dt.timedelta(days=DAYS_KEPT)
    LimitDay.objects.filter(day__lte=too_old).delete()


def _of_templates(sites: list[SiteLimits]) -> Iterator[tuple[Key, int]]:
    for of_site in sites:
        for limit in of_site.limits:
            if limit.code in OF_TEMPLATES and limit.used is not None:
                yield Key(of_site.site.pk, limit.subject, limit.code), limit.used


def limit_trends(tallies: Tallies) -> Trends:
    """Return how each limit was used over the days kept. One query.

    The database fits the lines, as 28 days of three limits of each template are many
    rows.
    """
    of_limits = LimitDay.objects.values_list("template", "team", "code").annotate(
        days=Count("pk"), slope=RegrSlope(y="used", x=_NUMBER_OF_DAY)
    )
    # Without deleted ones, whose name may be another's by now.
    keys: dict[tuple[int | None, int | None], tuple[int | None, str]] = {
        **{(each.pk, None): (each.site_id, each.name) for each in tallies.templates},
        **{(None, team.pk): (None, team.name) for team in tallies.teams},
    }
    return {
        Key(*keys[template_id, team_id], code): Trend(days=number, slope=slope)
        for template_id, team_id, code, number, slope in of_limits.order_by()
        if (template_id, team_id) in keys
    }
