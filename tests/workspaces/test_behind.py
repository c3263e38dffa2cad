"""Workspaces at an edge or replica that is behind the change of their snapshot."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.errors import Refused
from provisioner.lib.refusals import InvalidRequest, StepRefused
from provisioner.sites.actions.sites import perforce_server_save, site_save
from provisioner.sites.connections.perforce import check_perforce
from provisioner.sites.models import (
    PerforceServer,
    ReplicaPosition,
    ServerKind,
    Site,
    WhenBehind,
)
from provisioner.sites.queries import same_installation
from provisioner.sites.replicas import require_bound
from provisioner.sites.sweeps import sweep_positions
from provisioner.workspaces.models import Rescue, Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import queue_sweep, run_jobs_once, settle
from tests.support.lab import DEPOT, Lab, define_template
from tests.support.lab_perforce import LabServer
from tests.support.replicas import replica_of_lab
from tests.support.requests import workspace_create
from tests.support.retiring import retire
from tests.support.submits import submit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(transactional_db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@contextmanager
def moved_to(
    kind: ServerKind, template: Template, *, lab: Lab, directory: Path, behind: bool
) -> Iterator[tuple[LabServer, PerforceServer]]:
    """Use a server that follows the lab's at the template's site.

    With `behind` it is held, and lacks the change that the template is then built at.
    """
    name, site = f"there-{uuid.uuid4().hex[:6]}", template.site
    with replica_of_lab(lab, site, directory, kind=kind, name=name) as (running, row):
        if behind:
            running.lag(held=True)
            submit(lab, path=f"//depot/{DEPOT}/src/file0.txt")
            template_build(by=template.owner, template=template)
            settle(template)
        site.perforce_server = row
        site.save()
        yield running, row


def flush_of(workspace: Workspace) -> Step:
    return Step.objects.get(operation__subject__workspace=workspace, name="flush")


def is_at_its_pin(workspace: Workspace, server: PerforceServer) -> bool:
    have = registry.perforce(server).files.have_list(workspace.client_name)
    pin = workspace.snapshot
    return (have.count, have.digest) == (pin.have_count, pin.have_digest)


def test_a_flush_waits_at_an_edge_until_it_has_the_change(
    owner: User, lab_template: Template, lab: Lab, tmp_path: Path
) -> None:
    template = lab_template
    commit = template.site.perforce_server
    with moved_to(
        ServerKind.EDGE, template, lab=lab, directory=tmp_path, behind=True
    ) as (running, edge):
        assert same_installation(edge, commit)
        workspace = workspace_create(by=owner, template=template)
        run_jobs_once()
        step = flush_of(workspace)
        change = workspace.snapshot.change
        assert step.state == Step.State.RETRYING
        assert step.error_message.startswith(f"{edge.name} is at change ")
        assert f"behind {change} of {commit.name}." in step.error_message
        assert edge.position.behind

        running.lag()
        settle(workspace)
        assert workspace.state == Workspace.State.READY, workspace.status_message
        assert is_at_its_pin(workspace, edge)

        client = registry.perforce(commit).clients.find(workspace.client_name)
        assert client is not None
        assert client.server_id == edge.server_id
        with pytest.raises(Refused, match=r"reload -f -c CLIENT"):
            registry.perforce(commit).files.flush(workspace.client_name, change=change)
        other = PerforceServer(
            p4port="edge:1666", kind="edge", server_id="edge-2", upstream=commit
        )
        for of, owner_of_it in (
            (client, edge.server_id),
            (replace(client, server_id=""), commit.p4port),
        ):
            command = f"p4 -p edge:1666 reload -f -c {client.name} -p {owner_of_it}"
            with pytest.raises(StepRefused, match=re.escape(command)):
                require_bound(other, of)
        work = running.connect(
            client=workspace.client_name, user="alice", password="lab-password"
        )
        work.run("edit", "-k", f"//depot/{DEPOT}/src/file1.txt")
        retire(workspace)
        assert workspace.state == Workspace.State.TRASHED, workspace.status_message
        [shelf] = Rescue.objects.get(workspace=workspace).shelves
        assert registry.perforce(commit).shelves.list_files(shelf["change"])
        assert registry.perforce(commit).clients.find(workspace.client_name) is None


@pytest.mark.parametrize("kind", [ServerKind.BUILD, ServerKind.FORWARDING])
def test_a_workspace_lives_at_each_kind_that_holds_clients(
    kind: ServerKind,
    owner: User,
    published_template: Template,
    lab: Lab,
    tmp_path: Path,
) -> None:
    template = published_template
    with moved_to(kind, template, lab=lab, directory=tmp_path, behind=False) as (
        _,
        server,
    ):
        workspace = settle(workspace_create(by=owner, template=template))
        assert workspace.state == Workspace.State.READY, workspace.status_message
        assert is_at_its_pin(workspace, server)
        client = registry.perforce(server).clients.find(workspace.client_name)
        assert client is not None
        assert client.server_id == (server.server_id if kind.binds_clients else "")
        retire(workspace)
        assert workspace.state == Workspace.State.TRASHED, workspace.status_message


def test_a_site_leaves_no_clients_behind(
    owner: User, admin: User, published_template: Template, lab: Lab, tmp_path: Path
) -> None:
    template = published_template
    workspace = settle(workspace_create(by=owner, template=template))
    site = Site.objects.get(pk=template.site_id)
    with replica_of_lab(lab, site, tmp_path, kind=ServerKind.EDGE, name="edge-blr") as (
        _,
        edge,
    ):
        commit, site.perforce_server = site.perforce_server, edge
        with pytest.raises(InvalidRequest) as refused:
            site_save(by=admin, site=site)
        assert refused.value.field == "perforce_server"
        command = f"p4 -p {edge.p4port} reload -f -c {workspace.client_name} "
        assert f"{command}-p {commit.p4port}" in refused.value.sentence
        assert Site.objects.get(pk=site.pk).perforce_server == commit
        retire(workspace)
        site_save(by=admin, site=site)
        assert Site.objects.get(pk=site.pk).perforce_server == edge


def test_an_edge_with_workspaces_does_not_become_another_server(
    owner: User, admin: User, published_template: Template, lab: Lab, tmp_path: Path
) -> None:
    template = published_template
    with (
        moved_to(
            ServerKind.EDGE, template, lab=lab, directory=tmp_path / "1", behind=False
        ) as (_, edge),
        replica_of_lab(
            *(lab, template.site, tmp_path / "2"), kind=ServerKind.EDGE, name="edge-2"
        ) as (_, other),
    ):
        commit = edge.upstream
        assert commit is not None
        workspace = settle(workspace_create(by=owner, template=template))
        proxy = PerforceServer.objects.create(
            name="proxy",
            kind="proxy",
            upstream=edge,
            p4port=edge.p4port,
            p4user=edge.p4user,
        )
        Site.objects.filter(pk=template.site_id).update(perforce_server=proxy)
        moves = f"reload -f -c {workspace.client_name} -p {edge.server_id}"

        for changes, field, said in (
            (
                {"p4port": other.p4port, "server_id": other.server_id},
                "server_id",
                f"p4 -p {other.p4port} {moves}",
            ),
            (
                {"kind": "commit", "upstream": None, "p4port": commit.p4port},
                "kind",
                f"p4 -p {commit.p4port} {moves}",
            ),
            ({"p4port": other.p4port}, "p4port", f"{other.server_id}, not "),
            ({"p4port": "127.0.0.1:1"}, "p4port", "has to answer first"),
            ({"server_id": ""}, "server_id", "Give the ServerID"),
        ):
            changed = PerforceServer.objects.get(pk=edge.pk)
            for name, value in changes.items():
                setattr(changed, name, value)
            with pytest.raises(InvalidRequest, match=re.escape(said)) as refused:
                perforce_server_save(by=admin, server=changed)
            assert refused.value.field == field
        proxy.upstream, proxy.p4port = commit, commit.p4port
        with pytest.raises(InvalidRequest, match=re.escape(moves)):
            perforce_server_save(by=admin, server=proxy)
        assert PerforceServer.objects.get(pk=edge.pk).p4port == edge.p4port

        retire(workspace)
        perforce_server_save(by=admin, server=proxy)
        assert PerforceServer.objects.get(pk=proxy.pk).upstream == commit


def test_a_flush_that_waited_long_enough_fails_and_can_be_retried(
    owner: User,
    lab_template: Template,
    lab: Lab,
    tmp_path: Path,
    as_admin: Client,
) -> None:
    template = lab_template
    with moved_to(
        ServerKind.EDGE, template, lab=lab, directory=tmp_path, behind=True
    ) as (_, edge):
        queue_sweep(sweep_positions)
        run_jobs_once()
        assert ReplicaPosition.objects.get(server=edge).behind
        checks = {check.name: check for check in check_perforce(edge)}
        assert checks["perforce_kind"].outcome == "passed"
        assert " behind " in checks["perforce_position"].sentence
        edge.catch_up_seconds = 0
        edge.save()
        workspace = settle(workspace_create(by=owner, template=template))

        assert workspace.state == Workspace.State.FAILED
        assert workspace.status_code == "replica_is_behind"
        assert "did not arrive there within 0 s" in workspace.status_message
        position = ReplicaPosition.objects.get(server=edge)
        assert position.sentence in as_admin.get(f"/perforce/{edge.pk}/").text

        template_build(by=template.owner, template=template)
        settle(template)
        assert "reload -f -c" in template.status_message
        new = define_template(template.site, name=f"t{uuid.uuid4().hex[:8]}")
        template_build(by=new.owner, template=new, change=workspace.snapshot.change)
        settle(new)
        assert new.status_code == "replica_is_behind"


def test_a_forwarding_replica_is_passed_over_if_its_row_says_so(
    owner: User, lab_template: Template, lab: Lab, tmp_path: Path
) -> None:
    template = lab_template
    with moved_to(
        ServerKind.FORWARDING, template, lab=lab, directory=tmp_path, behind=True
    ) as (_, replica):
        PerforceServer.objects.filter(pk=replica.pk).update(
            catch_up_seconds=0, when_behind=WhenBehind.UPSTREAM
        )
        template.site.refresh_from_db()
        workspace = settle(workspace_create(by=owner, template=template))

        assert replica.upstream is not None
        assert flush_of(workspace).state == Step.State.DONE
        assert is_at_its_pin(workspace, replica.upstream)
