"""What clones save: by month and team, from measured builds, and as CSV."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Snapshot, Template
from provisioner.dashboard.savings import last_months, saved_lately, savings
from provisioner.limits.tallies import Tallies
from provisioner.workspaces.models import Workspace
from tests.support.browsers import table
from tests.support.factories import SnapshotFactory

GIB, HOUR = 2**30, 3600


@pytest.fixture
def built(snapshot: Snapshot) -> Snapshot:
    """A clean build of two hours, and a later one of minutes; 100 GiB."""
    snapshot.is_clean = True
    snapshot.sync_seconds, snapshot.build_seconds = 0.5 * HOUR, 1.5 * HOUR
    snapshot.save()
    Template.objects.update(used_bytes=100 * GIB)
    SnapshotFactory.create(
        template=snapshot.template, change=snapshot.change + 1, build_seconds=60
    )
    return snapshot


def made(
    owner: User,
    snapshot: Snapshot,
    name: str,
    *,
    at: dt.datetime,
    retired_at: dt.datetime | None = None,
    unique_bytes: int | None = 10 * GIB,
) -> None:
    row = Workspace.objects.create(
        name=name,
        owner=owner,
        template=snapshot.template,
        snapshot=snapshot,
        site=snapshot.template.site,
        uid=20001,
        gid=20000,
        state="retired" if retired_at else "ready",
        ready_at=at,
        retired_at=retired_at,
        unique_bytes=unique_bytes,
    )
    waited = dt.timedelta(hours=0.5)
    Workspace.objects.filter(pk=row.pk).update(created_at=at - waited)


def test_hours_and_space_are_those_of_a_month_and_a_team(
    admin: User, alice: User, carol: User, built: Snapshot
) -> None:
    alice.team = Team.objects.create(name="Rendering")
    alice.save()
    months = last_months(timezone.now().astimezone(dt.UTC).date())
    now, before, long_ago = (
        dt.datetime.combine(months[n], dt.time(9), tzinfo=dt.UTC) for n in (0, 1, 3)
    )
    made(alice, built, "a", at=now)
    made(alice, built, "b", at=before, unique_bytes=None)
    made(carol, built, "c", at=long_ago, retired_at=before)

    rows = {(row.month, row.team): row for row in savings(admin)}

    assert list(rows) == [
        (months[0], "Rendering"),
        (months[1], "Rendering"),
        (months[2], ""),
        (months[3], ""),
    ]
    newest = rows[months[0], "Rendering"]
    # Two hours of the clean build, less the half that was waited.
    assert (newest.workspaces, newest.hours) == (1, 1.5)
    assert newest.unused_bytes == 90 * GIB, "what was not measured counts for nothing"
    assert rows[months[1], "Rendering"].unused_bytes == 0
    # Made in one month, there at the end of the next, gone in the third.
    assert (rows[months[2], ""].workspaces, rows[months[2], ""].hours) == (0, 0)
    assert rows[months[2], ""].unused_bytes == 90 * GIB
    assert (rows[months[3], ""].workspaces, rows[months[3], ""].hours) == (1, 1.5)


def test_the_page_says_the_formula_and_the_table_has_the_same(
    as_admin: Client, as_alice: Client, alice: User, built: Snapshot
) -> None:
    made(alice, built, "a", at=timezone.now())

    page = as_admin.get("/savings/").text
    [row] = table(as_admin, "/savings/?as=csv")

    assert "clean builds as measured" in page
    assert '<td class="number" data-label="Hours">1.5</td>' in page
    assert (row["team"], row["hours_not_spent"]) == ("", "1.5")
    assert row["bytes_not_used"] == str(90 * GIB)
    assert as_alice.get("/savings/").status_code == 403


def test_without_a_clean_build_all_builds_are_the_measure(
    alice: User, built: Snapshot
) -> None:
    Snapshot.objects.update(is_clean=False)
    made(alice, built, "a", at=timezone.now())

    lately = saved_lately(Tallies(), now=timezone.now())

    # The median of two hours and a minute, less half an hour.
    assert lately.hours == pytest.approx((2 + 1 / 60) / 2 - 0.5)
    assert (lately.workspaces, lately.unused_bytes) == (1, 90 * GIB)


def test_nothing_saved_is_a_page_too(as_admin: Client) -> None:
    assert "No workspace has become ready yet." in as_admin.get("/savings/").text
    assert table(as_admin, "/savings/?as=csv") == []
