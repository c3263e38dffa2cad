"""/api/v1/sites: how sites are."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.sites.actions.sites import site_test
from provisioner.sites.models import Site
from tests.support.factories import SiteFactory

pytestmark = pytest.mark.django_db


def test_it_says_what_the_last_test_found(api_as_admin: APIClient) -> None:
    site: Site = SiteFactory.create(name="munich-1")
    [before] = api_as_admin.get("/api/v1/sites").json()["results"]
    assert (before["health"], before["reports"]) == ("unknown", [])

    site_test(by=User.objects.get(username="admin"), site=site)

    [after] = api_as_admin.get("/api/v1/sites").json()["results"]
    assert (after["name"], after["health"]) == ("munich-1", "failed")
    web, worker, _ = after["reports"]
    outcomes = {check["name"]: check["found"] for check in web["checks"]}
    assert outcomes["ontap_address"] == "failed"
    assert outcomes["svm"] == "skipped"
    assert "the queue storage" in worker["why_not"]
