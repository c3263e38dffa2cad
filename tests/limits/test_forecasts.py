"""When what a site has is used up, at the rate of the last weeks."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Template
from provisioner.lib.limits import Limit
from provisioner.lib.trends import Trend
from provisioner.limits.forecasts import Forecast, nearest_forecasts, nearest_quotas
from provisioner.limits.models import LimitDay
from provisioner.limits.queries import SiteLimits
from provisioner.limits.samples import Key, Trends, keep_limit_days, limit_trends
from provisioner.limits.tallies import Tallies
from provisioner.sites.models import AggregateDay, CapacityDay, Site, SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.factories import MirrorFactory

TODAY = dt.date(2026, 11, 25)
SPACE = Limit(code="space_low", subject="munich", used=90, allowed=100, is_bytes=True)
VOLUMES = Limit(code="volume_limit", subject="munich", used=500, allowed=1000)
SNAPSHOTS = Limit(code="snapshot_limit", subject="main", used=1000, allowed=1023)


def measured(days: int, *, used: int = 90, growth: int = 1) -> list[CapacityDay]:
    return [
        CapacityDay(
            day=TODAY - dt.timedelta(days=ago),
            used_bytes=used - growth * ago,
            volumes=500,
            clones=400,
        )
        for ago in reversed(range(days))
    ]


def forecasts(
    *limits: Limit, days: list[CapacityDay], of_templates: Trends | None = None
) -> list[Forecast]:
    site = Site(pk=1, name="munich")
    of_site = SiteLimits(
        site=site, capacity=SiteCapacity(), is_stale=False, limits=list(limits)
    )
    of_others = {(1, "aggr2"): [other_day(ago) for ago in range(8)]}
    return nearest_forecasts(
        [of_site],
        {1: days},
        of_others=of_others,
        of_templates=of_templates or {},
        most=9,
    )


def other_day(ago: int) -> AggregateDay:
    """Return a day of another aggregate: it grows by 2 a day, to 80 today."""
    day = TODAY - dt.timedelta(days=ago)
    return AggregateDay(day=day, used_bytes=80 - 2 * ago, provisioned_bytes=7)


def test_each_aggregate_has_a_rate_of_its_own() -> None:
    other = SPACE._replace(used=80, part="aggr2")
    promised = other._replace(code="overcommitted", used=7)
    unseen = SPACE._replace(part="aggr3")

    found = forecasts(other, promised, unseen, SPACE, days=measured(28))

    assert [(one.limit.part, one.sentence) for one in found] == [
        ("", "Full in 10 days at this rate"),
        ("aggr2", "Full in 10 days at this rate"),
        ("aggr3", "No forecast: 0 of 7 days measured"),
        ("aggr2", "Not growing"),
    ]


def test_what_is_full_first_comes_first_whatever_its_share_is() -> None:
    found = forecasts(SNAPSHOTS, VOLUMES, SPACE, days=measured(28))

    assert [one.limit for one in found] == [SPACE, SNAPSHOTS, VOLUMES]
    assert [one.sentence for one in found] == [
        "Full in 10 days at this rate",
        "No forecast: 0 of 7 days measured",
        "Not growing",
    ]
    assert found[0].is_soon


def test_limits_of_templates_have_a_rate_of_their_own() -> None:
    key = Key(1, "main", "snapshot_limit")
    elsewhere = Key(2, "main", "snapshot_limit")  # the same name at another site
    of_templates = {key: Trend(days=7, slope=1.0), elsewhere: Trend()}
    [found] = forecasts(SNAPSHOTS, days=[], of_templates=of_templates)
    assert found.sentence == "Full in 23 days at this rate"
    of_templates[key] = Trend(days=6, slope=1.0)
    [found] = forecasts(SNAPSHOTS, days=[], of_templates=of_templates)
    assert found.sentence == "No forecast: 6 of 7 days measured"


def test_quotas_of_people_are_not_written_down_and_have_none() -> None:
    quota = Limit(code="quota_workspaces", subject="alice", used=9, allowed=10)
    [found] = forecasts(quota, days=[])
    assert (found.days, found.sentence) == (None, "")


def test_the_quota_that_is_full_first_is_first() -> None:
    rendering = Limit(
        code="team_quota_workspaces", subject="Rendering", used=54, allowed=100
    )
    audio = rendering._replace(subject="Audio", used=97)
    unused = rendering._replace(subject="Tools", used=0)
    trends = {Key(None, "Rendering", rendering.code): Trend(days=7, slope=2.0)}

    found = nearest_quotas([audio, unused, rendering], trends=trends, most=3)

    assert [each.sentence for each in found] == [
        "Full in 23 days at this rate",
        "No forecast: 0 of 7 days measured",
    ]
    assert all(each.is_quota for each in found)


@pytest.mark.django_db
def test_quotas_of_teams_that_are_used_have_a_row_a_day(
    ready: Workspace, alice: User
) -> None:
    team = Team.objects.create(name="Rendering", max_workspaces=4, max_unique_bytes=9)
    Team.objects.create(name="Audio", max_workspaces=4)
    Team.objects.create(name="Tools")
    User.objects.filter(pk=alice.pk).update(team=team)
    for ago in range(8):
        keep_limit_days(today=TODAY - dt.timedelta(days=ago))

    saved = LimitDay.objects.filter(template=None).values_list("team", "code", "used")
    assert set(saved) == {(team.pk, "team_quota_workspaces", 1)}
    assert len(saved) == 8
    key = Key(None, "Rendering", "team_quota_workspaces")
    assert limit_trends(Tallies())[key] == Trend(days=8, slope=0)
    keep_limit_days(today=TODAY + dt.timedelta(days=60))
    assert LimitDay.objects.filter(team=team).count() == 1
    team.delete()
    assert not LimitDay.objects.filter(template=None).exists()


@pytest.mark.django_db
def test_each_day_has_one_row_for_each_limit_of_a_template(
    ready: Workspace, django_assert_max_num_queries: Any
) -> None:
    template = ready.template
    Template.objects.filter(pk=template.pk).update(
        state="ready", volume_uuid="u", used_inodes=70, actual_size_bytes=2**30
    )
    keep_limit_days(today=TODAY - dt.timedelta(days=28))
    keep_limit_days(today=TODAY - dt.timedelta(days=1))
    keep_limit_days(today=TODAY)
    Template.objects.filter(pk=template.pk).update(used_inodes=90)
    with django_assert_max_num_queries(10):
        keep_limit_days(today=TODAY)  # later on the same day

    trends = limit_trends(Tallies())
    key = Key(template.site_id, template.name, "inode_limit")
    assert trends[key].days == 2
    assert trends[key].slope == pytest.approx(20)
    for code in ("clone_limit", "snapshot_limit"):
        assert trends[key._replace(code=code)] == Trend(days=2, slope=0)


def test_six_days_give_no_forecast() -> None:
    [six] = forecasts(SPACE, days=measured(6))
    assert six.sentence == "No forecast: 6 of 7 days measured"
    [seven] = forecasts(SPACE, days=measured(7))
    assert seven.sentence == "Full in 10 days at this rate"


def test_what_was_before_twenty_eight_days_does_not_count() -> None:
    steep = measured(90, growth=1)
    for day in steep[:-28]:
        day.used_bytes = 0

    [found] = forecasts(SPACE, days=steep)

    assert found.trend is not None
    assert found.trend.days == 28
    assert found.days == 10


def test_days_without_a_figure_are_no_samples() -> None:
    days = measured(28)
    for day in days[:-5]:
        day.used_bytes = None
    [found] = forecasts(SPACE, days=days)
    assert found.days is None
    assert found.sentence == "No forecast: 5 of 7 days measured"


def test_what_is_full_says_so_and_years_are_no_date() -> None:
    [full] = forecasts(SPACE._replace(used=100), days=measured(3))
    assert full.sentence == "Full now"
    [far] = forecasts(SPACE._replace(allowed=1000), days=measured(28))
    assert far.sentence == "Not within two years at this rate"
    assert not far.is_soon


@pytest.mark.django_db
def test_limits_of_mirrors_are_not_saved_and_stop_no_others(ready: Workspace) -> None:
    template = ready.template
    Template.objects.filter(pk=template.pk).update(
        state="ready", volume_uuid="u", used_inodes=70, actual_size_bytes=2**30
    )
    MirrorFactory.create(template=template)

    keep_limit_days(today=TODAY)

    saved = LimitDay.objects.values_list("template", "code")
    assert sorted(saved) == [
        (template.pk, "clone_limit"),
        (template.pk, "inode_limit"),
        (template.pk, "snapshot_limit"),
    ]
