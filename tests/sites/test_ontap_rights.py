"""Everything that users ask for works with an ONTAP account of the SVM alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from provisioner.catalog.models import Template
from provisioner.limits.sweeps import measure
from provisioner.sites.models import Site, SiteCapacity
from provisioner.workspaces.actions.retiring import workspace_purge, workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.lab import build
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def least_rights(lab_site: Site) -> Site:
    """The lab's site, whose account has the role of docs/security.md."""
    lab_site.ontap_user = "leastadmin"
    lab_site.save(update_fields=["ontap_user"])
    return lab_site


def test_a_workspace_lives_with_an_account_of_the_svm(
    least_rights: Site, lab_template: Template, run_jobs: Callable[[], None]
) -> None:
    template = build(lab_template, run_jobs)
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = workspace_create(by=alice, template=template)
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message

    workspace_retire(by=alice, workspace=workspace)
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.TRASHED, workspace.status_message

    workspace_purge(by=UserFactory.create(is_staff=True), workspace=workspace)
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.RETIRED, workspace.status_message


def test_what_can_be_measured_is_measured(least_rights: Site) -> None:
    capacity: SiteCapacity = measure(least_rights)

    assert capacity.volumes > 0
    assert capacity.ontap_version == ""
    assert "The aggregate could not be checked" in capacity.status_message
