from __future__ import annotations

import datetime as dt
import re

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.durations import BUILDS_PLOTTED, Durations
from provisioner.catalog.models import Template, TemplateOperation
from provisioner.catalog.overviews import find_template_overview
from provisioner.catalog.templatetags.plots import plot_of
from provisioner.engine.models import Operation, Step

DAY = dt.timedelta(days=1)


def built(
    template: Template,
    by: User,
    *,
    days_ago: float,
    failed: str = "",
    **seconds: float,
) -> Operation:
    """A build that has ended, with what its phases took; `failed` names one of them."""
    began = timezone.now() - days_ago * DAY
    operation = Operation.objects.create(
        kind=TemplateOperation.BUILD,
        subject=template.subject,
        state=Operation.State.FAILED if failed else Operation.State.SUCCEEDED,
        requested_by=by,
        ended_at=began + DAY / 24,
    )
    Operation.objects.filter(pk=operation.pk).update(created_at=began)
    for position, (name, took) in enumerate(seconds.items()):
        Step.objects.create(
            operation=operation,
            name=name,
            position=position,
            attempt=1,
            state=Step.State.FAILED if name == failed else Step.State.DONE,
            error_message="It broke." if name == failed else "",
            started_at=began,
            ended_at=began + dt.timedelta(seconds=took),
        )
    return operation


@pytest.fixture
def builds(template: Template, admin: User) -> list[Operation]:
    """Three builds: the second failed, the third has tests."""
    return [
        built(template, admin, days_ago=3, sync=600, build=30, snapshot=0.2),
        built(template, admin, days_ago=2, sync=20, build=60, failed="build"),
        built(template, admin, days_ago=1, sync=30, build=60, test=5, snapshot=0.1),
    ]


def shown_to(user: User, template: Template) -> Durations:
    overview = find_template_overview(user, pk=template.pk)
    assert overview is not None
    return overview.durations


def test_phases_are_those_that_a_build_got_to_in_order(
    template: Template, alice: User, builds: list[Operation]
) -> None:
    durations = shown_to(alice, template)

    assert list(durations.builds) == builds
    assert {p.name: [t and t.seconds for t in p.took] for p in durations.phases} == {
        "sync": [600, 20, 30],
        "build": [30, 60, 60],
        "test": [None, None, 5],
        "snapshot": [0.2, None, 0.1],
    }
    assert [phase.failed_count for phase in durations.phases] == [0, 1, 0, 0]


def test_a_test_that_rejects_its_snapshot_counts_as_failed(
    template: Template, alice: User, builds: list[Operation]
) -> None:
    builds[2].steps.filter(name="test").update(has_rejected=True)

    phases = shown_to(alice, template).phases

    assert [phase.failed_count for phase in phases] == [0, 1, 1, 0]


def test_builds_under_way_and_long_ago_are_left_out(
    template: Template, admin: User, build: Operation
) -> None:
    for days in reversed(range(BUILDS_PLOTTED + 5)):
        built(template, admin, days_ago=days, sync=days + 1)

    durations = shown_to(admin, template)

    assert build not in durations.builds
    assert len(durations.builds) == BUILDS_PLOTTED
    assert durations.phases[0].last.seconds == 1


def test_bars_stay_within_the_plot_and_stand_on_its_ground(
    template: Template, alice: User, builds: list[Operation]
) -> None:
    for phase in shown_to(alice, template).phases:
        bars = plot_of(phase).bars
        assert len(bars) == len(phase.known)
        assert max(bar.height for bar in bars) == 100
        for bar in bars:
            assert bar.y + bar.height == 100
            assert bar.x >= 0
            assert bar.x + bar.width <= 100
            assert bar.height >= 2


def test_a_phase_that_took_no_time_is_drawn_too(
    template: Template, admin: User
) -> None:
    built(template, admin, days_ago=1, sync=0)
    (phase,) = shown_to(admin, template).phases
    assert plot_of(phase).bars[0].height == 2


def test_the_page_has_the_plot_its_words_and_its_numbers(
    as_carol: Client, template: Template, builds: list[Operation]
) -> None:
    first = as_carol.get(f"/templates/{template.pk}/").text
    page = as_carol.get(f"/templates/{template.pk}/", {"more": "1"}).text
    part = as_carol.get(
        f"/templates/{template.pk}/", {"more": "1"}, headers={"HX-Request": "true"}
    ).text

    # It comes once the page is there; without scripts a link leads to it.
    assert "plot-bars" not in first
    assert '<a href="?more=1#more">Mirrors, warm pools and build times</a>' in first
    assert part.count('<svg class="plot-bars"') == 4
    assert "<h1>" not in part
    assert page.count('<svg class="plot-bars"') == 4
    assert (
        'aria-label="build: 3 builds, from 30 s to 1 min, the last 1 min, 1 failed"'
        in page
    )
    assert re.search(r"<title>Build 1 min, failed; [^<]+</title>", page)
    assert page.count("bar-failed") == 1
    table = page[page.index(">Table<") :]
    assert re.search(r'data-label="Build">1 min, failed</td>', table)
    assert f'href="/operations/{builds[1].pk}/"' in table
    assert "3 builds" in page


def test_a_template_that_was_never_built_has_no_plot(
    as_carol: Client, template: Template
) -> None:
    page = as_carol.get(f"/templates/{template.pk}/", {"more": "1"})
    assert "plot-bars" not in page.text


def test_more_builds_need_no_more_queries(
    as_carol: Client,
    template: Template,
    admin: User,
    builds: list[Operation],
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for days in range(5, 20):
        built(template, admin, days_ago=days, sync=5, build=6)
    with django_assert_max_num_queries(19):
        as_carol.get(f"/templates/{template.pk}/")
