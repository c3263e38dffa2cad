"""Charts: the same numbers as a picture and as a table, for the time in the address."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from provisioner.dashboard.spans import SpanForm, span_of
from provisioner.engine.models import Operation
from provisioner.sites.models import CapacityDay, SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.browsers import table
from tests.support.factories import SiteFactory

GIB = 2**30
UPLOT = {
    "static/uplot/1.6.32/uPlot.iife.min.js": (
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
    ),
    "static/css/uplot.css": (
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
    ),
}


def today() -> dt.date:
    return timezone.now().astimezone(dt.UTC).date()


def ago(days: int) -> dt.date:
    return today() - dt.timedelta(days=days)


def chart(page: str, id: str) -> str:
    """Return the part of a page with a chart."""
    found = page.partition(f'aria-labelledby="chart-{id}"')[2]
    return found.partition("</section>")[0]


def rows(page: str, id: str) -> dict[str, list[str]]:
    """Return the cells of a chart's table, by its day."""
    lines = re.findall(r"<tr data-point(.*?)</tr>", chart(page, id))
    texts = [
        [re.sub("<[^>]*>", "", c) for c in re.split("(?=<t[hd])", x)[1:]] for x in lines
    ]
    return {name: cells for name, *cells in texts}


@pytest.fixture
def measured(failed: Workspace) -> Workspace:
    site, other = failed.site, SiteFactory.create()
    SiteCapacity.objects.create(
        site=site, aggregate_size_bytes=8 * GIB, measured_at=timezone.now()
    )
    for days in (1, 2, 33, 300):
        CapacityDay.objects.create(
            site=site,
            day=ago(days),
            size_bytes=8 * GIB,
            used_bytes=(2 if days < 30 else 1) * GIB,
            clones=1200,
        )
        CapacityDay.objects.create(site=other, day=ago(days), clones=34)
    return failed


def test_days_are_drawn_with_their_numbers_as_a_table(
    as_admin: Client, measured: Workspace
) -> None:
    page = as_admin.get("/overview/?more=1").text

    space = rows(page, f"space-{measured.site.pk}")
    assert list(space) == [f"{ago(days):%-d %b %Y}" for days in (1, 2)]
    assert space[f"{ago(1):%-d %b %Y}"] == ["2 GiB", "8 GiB", "not known", "not known"]
    # A quarter of the height is used.
    drawn = chart(page, f"space-{measured.site.pk}")
    assert re.search(r'class="bar-value" d="M[\d.]+ 75h[\d.]+v25h-', drawn)
    midnight = dt.datetime.combine(ago(1), dt.time(), tzinfo=dt.UTC)
    at = f"{midnight.timestamp():.0f}"
    assert f'data-point="{at} {2 * GIB} {8 * GIB} - -"' in drawn
    assert rows(page, "clones")[f"{ago(1):%-d %b %Y}"] == ["1,234"]
    failures = rows(page, "failed")
    assert len(failures) == 30
    assert failures[f"{today():%-d %b %Y}"] == ["1", "1"]
    assert failures[f"{ago(5):%-d %b %Y}"] == ["0", "0"]


def test_the_period_before_stands_beside_each_day(
    as_admin: Client, measured: Workspace
) -> None:
    page = as_admin.get("/overview/?range=month&compare=on").text

    day = f"{ago(3):%-d %b %Y}"
    CapacityDay.objects.create(
        site=measured.site, day=ago(3), size_bytes=8 * GIB, used_bytes=GIB, clones=1
    )
    assert "Period before" in page
    page = as_admin.get("/overview/?range=month&compare=on").text
    assert rows(page, f"space-{measured.site.pk}")[day][-1] == "1 GiB"
    assert 'class="bar-before"' in chart(page, f"space-{measured.site.pk}")


def test_the_row_of_a_bar_leads_to_the_rows_that_it_counts(
    as_admin: Client, measured: Workspace
) -> None:
    as_admin.cookies["zone"] = "Asia/Tokyo"
    page = as_admin.get("/overview/?more=1").text

    links = re.findall(r'<th scope="row"><a href="([^"]*)', chart(page, "failed"))
    of_today, of_yesterday = (unescape(link) for link in links[:2])

    [row] = table(as_admin, f"{of_today}&as=csv")
    assert row["subject"] == measured.name
    assert table(as_admin, f"{of_yesterday}&as=csv") == []


@pytest.mark.parametrize(
    ("query", "days"), [("range=week", 7), ("more=1", 30), ("range=quarter", 91)]
)
def test_the_address_says_how_many_days(
    as_admin: Client, measured: Workspace, query: str, days: int
) -> None:
    page = as_admin.get(f"/overview/?{query}").text
    assert len(rows(page, "failed")) == days
    assert page.count('aria-current="true"') == 1


def test_a_day_is_shown_by_the_hour(as_admin: Client, measured: Workspace) -> None:
    page = as_admin.get("/overview/?range=day").text
    assert len(rows(page, "failed")) == 24
    assert "Hour (UTC)" in chart(page, "failed")
    assert [cells[0] for cells in rows(page, "failed").values()].count("1") == 1


def test_days_of_ones_own_are_shown(as_admin: Client, measured: Workspace) -> None:
    page = as_admin.get(f"/overview/?range=custom&since={ago(3)}&until={ago(1)}").text
    assert len(rows(page, f"space-{measured.site.pk}")) == 2
    assert "Nothing ended in this time." in chart(page, "failed")
    assert f'value="{ago(3)}"' in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"since": "2026-11-09", "until": "2026-11-02"},
            "It ends before it begins on 9",
        ),
        ({"since": "2026-11-09"}, "Choose the last day."),
        ({"until": "2026-11-09"}, "Choose the first day."),
        ({"since": "2024-11-09", "until": "2026-11-09"}, "Choose at most 366 days."),
        ({"since": "yesterday", "until": "2026-11-09"}, "Enter a valid date."),
    ],
)
def test_a_time_that_cannot_be_is_said_at_the_field_and_nothing_is_lost(
    as_admin: Client, measured: Workspace, given: dict[str, Any], said: str
) -> None:
    page = as_admin.get("/overview/", {"range": "custom", **given})

    assert page.status_code == 200
    assert said in page.text
    for value in given.values():
        assert f'value="{value}"' in page.text
    assert len(rows(page.text, "failed")) == 30, "the usual time is shown"


def test_one_day_is_compared_with_the_day_before() -> None:
    span = span_of(
        SpanForm(
            {
                "range": "custom",
                "since": "2026-11-09",
                "until": "2026-11-09",
                "compare": 1,
            }
        )
    )
    assert list(span.days) == [dt.date(2026, 11, 9)]
    assert span.earliest.date() == dt.date(2026, 11, 8)


def test_nothing_at_all_is_a_sentence(as_admin: Client) -> None:
    page = as_admin.get("/overview/?more=1").text
    assert "Nothing ended in this time." in page
    assert not Operation.objects.exists()


@pytest.mark.parametrize(("path", "digest"), UPLOT.items())
def test_the_library_is_as_published(path: str, digest: str) -> None:
    """Its version is in the path; the digests are of the package in the registry."""
    content = (settings.BASE_DIR / path).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest
    assert (settings.BASE_DIR / "static/uplot/1.6.32/LICENSE").is_file()
