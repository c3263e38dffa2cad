"""/api/v1/findings."""

from __future__ import annotations

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.drift.models import Finding
from provisioner.drift.repairs import settle
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.factories import UserFactory
from tests.support.findings import finding_about

FINDINGS = "/api/v1/findings"


@pytest.fixture
def finding(ready: Workspace) -> Finding:
    return finding_about(ready)


def test_administrators_see_findings_with_what_would_be_done(
    api_as_admin: APIClient, finding: Finding
) -> None:
    [row] = api_as_admin.get(FINDINGS).json()["results"]
    assert row["kind"] == "volume_without_row"
    assert row["action"] == "remove"
    assert len(row["preview"]) == 3
    assert (row["asked_by"], row["resolved_by"]) == (None, None)
    assert api_as_admin.get(f"{FINDINGS}/{finding.pk}").json() == row


def test_findings_are_filtered(api_as_admin: APIClient, finding: Finding) -> None:
    def count(**query: str | int) -> int:
        return len(api_as_admin.get(FINDINGS, query).json()["results"])

    assert count(kind="volume_without_row", site=finding.site.name) == 1
    assert count(kind="client_differs") == 0
    assert count(site="nowhere") == 0
    assert count(resolved=True) == 0
    settle(finding, resolution="Done.", by=None)
    assert (count(), count(resolved=True)) == (0, 1)
    assert api_as_admin.get(FINDINGS, {"kind": "x"}).status_code == 400


def test_resolving_is_accepted_and_queued(
    api_as_admin: APIClient, finding: Finding
) -> None:
    response = api_as_admin.post(f"{FINDINGS}/{finding.pk}/resolve")

    assert response.status_code == 202
    assert response.json()["asked_by"] == "admin"
    assert response["Location"].endswith(f"{FINDINGS}/{finding.pk}")
    assert ProcrastinateJob.objects.filter(task_name="resolve_finding").count() == 1


@pytest.mark.parametrize(
    ("is_resolved", "action", "code"),
    [(True, "remove", "finding_resolved"), (False, "none", "finding_needs_you")],
)
def test_what_cannot_be_done_is_refused(
    is_resolved: bool,
    action: str,
    code: str,
    api_as_admin: APIClient,
    ready: Workspace,
) -> None:
    finding = finding_about(ready, action=action)
    if is_resolved:
        settle(finding, resolution="Done.", by=None)

    response = api_as_admin.post(f"{FINDINGS}/{finding.pk}/resolve")

    assert response.status_code == 409
    assert response.json()["code"] == code


def test_a_check_is_queued(api_as_admin: APIClient, ready: Workspace) -> None:
    response = api_as_admin.post(f"{FINDINGS}/check")

    assert (response.status_code, response.json()) == (202, {"queued": 2})
    assert ProcrastinateJob.objects.filter(task_name="check_site").count() == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("get", "/{pk}"), ("post", "/{pk}/resolve"), ("post", "/check")],
)
def test_it_is_for_administrators(
    method: str, path: str, alice: User, carol: User, finding: Finding
) -> None:
    team = Team.objects.create(name="engine")
    User.objects.filter(pk=alice.pk).update(team=team)
    mate = UserFactory.create(username="bob", team=team)
    address = FINDINGS + path.format(pk=finding.pk)
    for user in (alice, mate, carol):
        response = getattr(api_of(user), method)(address)
        assert response.status_code == 403, user
        assert response.json()["code"] == "not_allowed"
    assert getattr(api_of(None), method)(address).status_code == 401
    assert not ProcrastinateJob.objects.filter(
        task_name__in=("resolve_finding", "check_site")
    ).exists()
