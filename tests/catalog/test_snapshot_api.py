"""GET /api/v1/snapshots."""

from __future__ import annotations

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from provisioner.catalog.models import Snapshot
from tests.support.factories import SnapshotFactory

SNAPSHOTS = "/api/v1/snapshots"


def test_everybody_lists_published_snapshots(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    SnapshotFactory.create(template=snapshot.template, deleted_at=timezone.now())

    (row,) = api_as_alice.get(SNAPSHOTS).json()["results"]

    assert row["id"] == snapshot.pk
    assert row["template"] == snapshot.template_id
    assert row["change"] == snapshot.change
    assert row["have_digest"] == snapshot.have_digest


@pytest.mark.parametrize("by", ["id", "name"])
def test_snapshots_are_filtered_by_template(
    api_as_alice: APIClient, snapshot: Snapshot, by: str
) -> None:
    SnapshotFactory.create()
    template = snapshot.template
    wanted = template.pk if by == "id" else template.name

    response = api_as_alice.get(SNAPSHOTS, {"template": wanted})

    assert [row["id"] for row in response.json()["results"]] == [snapshot.pk]


@pytest.mark.parametrize("template", ["", "\0"])
def test_a_malformed_filter_is_refused(api_as_alice: APIClient, template: str) -> None:
    response = api_as_alice.get(SNAPSHOTS, {"template": template})

    assert response.status_code == 400
    assert response.json()["code"] == "invalid"


@pytest.mark.parametrize("wanted", ["9" * 30, "²", "no-such"])
def test_a_filter_that_matches_nothing_gives_an_empty_list(
    api_as_alice: APIClient, snapshot: Snapshot, wanted: str
) -> None:
    response = api_as_alice.get(SNAPSHOTS, {"template": wanted})

    assert response.json()["results"] == []


def test_a_snapshot_is_shown(api_as_alice: APIClient, snapshot: Snapshot) -> None:
    response = api_as_alice.get(f"{SNAPSHOTS}/{snapshot.pk}")

    assert response.json()["name"] == snapshot.name


def test_a_deleted_snapshot_is_not_found(api_as_alice: APIClient) -> None:
    gone = SnapshotFactory.create(deleted_at=timezone.now())

    assert api_as_alice.get(f"{SNAPSHOTS}/{gone.pk}").status_code == 404


def test_nobody_sees_snapshots(api_as_nobody: APIClient, snapshot: Snapshot) -> None:
    assert api_as_nobody.get(SNAPSHOTS).status_code == 401
    assert api_as_nobody.get(f"{SNAPSHOTS}/{snapshot.pk}").status_code == 401


def test_the_list_is_bounded_in_queries(
    api_as_alice: APIClient, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(4):
        SnapshotFactory.create()

    # The token, the time, its owner's others, its use and count; the page, what is new.
    with django_assert_max_num_queries(7):
        api_as_alice.get(SNAPSHOTS)
