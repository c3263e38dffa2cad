"""A workspace of alice whose template is mirrored to another site, with Perforce."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.copies.actions import copy_rule_set
from provisioner.copies.models import CopiedSnapshot, WorkspaceCopy
from provisioner.copies.sweeps import tend_all
from provisioner.lib import clocks
from provisioner.mirrors.actions import mirror_create
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab, fill, running_lab
from tests.support.requests import workspace_create
from tests.support.work import AtWork


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running_lab("--peer", "--peer-port=0") as lab:
        fill(lab)
        yield lab


@pytest.fixture
def far_site(lab: Lab, lab_site: Site, settings: Any) -> Site:
    at_home = settings.SITE_SECRET
    settings.SITE_SECRET = lambda name, *, key: (
        lab.peer["password"]
        if (name, key) == ("ONTAP_PASSWORD", "far")
        else at_home(name, key=key)
    )
    same = ("perforce_server", "export_clients", "template_uid", "template_gid")
    return Site.objects.create(
        name="far",
        ontap_host=lab.peer["host"],
        ontap_port=lab.peer["port"],
        ontap_user=lab.peer["user"],
        ontap_ca_file=lab.peer["ca_file"],
        svm=lab.peer["svm"],
        aggregate=lab.peer["aggregate"],
        mount_root=lab.peer["mount_root"],
        **{name: getattr(lab_site, name) for name in same},
    )


@pytest.fixture
def hers(built_template: Template, far_site: Site) -> Workspace:
    """A ready workspace, with a rule to copy it."""
    admin = User.objects.filter(is_staff=True).latest("pk")
    mirror = settle(mirror_create(by=admin, template=built_template, site=far_site))
    copy_rule_set(by=admin, mirror=mirror, every_minutes=60, purposes=["development"])
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=built_template))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


@pytest.fixture
def at_work(hers: Workspace, lab: Lab) -> Iterator[AtWork]:
    session = AtWork(hers, lab)
    yield session
    session.end()


def copied(workspace: Workspace) -> CopiedSnapshot:
    """Copy a workspace now, and return what arrived."""
    WorkspaceCopy.objects.update(due_at=clocks.database_now())
    tend_all(now=clocks.database_now())
    copy = settle(WorkspaceCopy.objects.get(workspace=workspace))
    assert copy.state == WorkspaceCopy.State.READY, copy.status_message
    return copy.snapshots.get()
