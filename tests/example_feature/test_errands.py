"""An errand from the request to its end, on pages and by API."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.engine.sweeps.watchdog import watchdog
from tests.example_feature.actions import errand_run
from tests.example_feature.models import Errand, ErrandOperation
from tests.support.factories import SiteFactory

ERRANDS = "/api/v1/errands"


@pytest.fixture
def errand(alice: User, jobs_emptied: None) -> Errand:
    return errand_run(by=alice, site=SiteFactory.create(name="munich"), name="bread")


def test_an_errand_is_asked_for_and_run(
    api_as_alice: APIClient, run_jobs: Callable[[], None]
) -> None:
    SiteFactory.create(name="munich")

    asked = api_as_alice.post(ERRANDS, {"site": "munich", "name": "milk"})
    run_jobs()

    assert (asked.status_code, asked.json()["state"]) == (202, "running")
    [shown] = api_as_alice.get(ERRANDS).json()["results"]
    assert shown == {**asked.json(), "state": "done"}


def test_an_errand_that_fails_says_why(
    alice: User, jobs_emptied: None, run_jobs: Callable[[], None]
) -> None:
    errand = errand_run(by=alice, site=SiteFactory.create(), name="lost")

    run_jobs()

    errand.refresh_from_db()
    assert (errand.state, errand.status_message) == ("failed", "It lost its way.")


def test_its_pages_are_for_its_owner_and_administrators(
    errand: Errand,
    as_alice: Client,
    as_carol: Client,
    as_admin: Client,
    as_nobody: Client,
) -> None:
    operation = errand.operations.get()
    for address in (f"/errands/{errand.pk}/", f"/operations/{operation.pk}/"):
        assert "bread" in as_alice.get(address).text
        assert as_admin.get(address).status_code == 200
        assert as_carol.get(address).status_code == 404
        assert as_nobody.get(address).status_code == 302


def test_operations_name_it_beside_those_of_other_features(
    errand: Errand, as_alice: Client, api_as_alice: APIClient
) -> None:
    [listed] = api_as_alice.get(f"/api/v1/operations?errand={errand.pk}").json()[
        "results"
    ]

    assert (listed["kind"], listed["errand"]) == ("errand_run", errand.pk)
    assert (listed["workspace"], listed["template"]) == (None, None)
    page = as_alice.get("/operations/?q=bread").text
    assert "Run an errand bread" in page


def test_the_database_lets_one_operation_run_on_it(errand: Errand) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        start_operation(ErrandOperation.RUN, about=errand, by=errand.owner)


def test_one_that_was_lost_is_found(errand: Errand) -> None:
    Operation.objects.update(state=Operation.State.CANCELED, ended_at=timezone.now())

    watchdog(timestamp=0)

    errand.refresh_from_db()
    assert errand.state == Errand.State.FAILED
