"""The company of the demo: as the product itself would have written it."""

from __future__ import annotations

from copy import deepcopy

import pytest
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.audit_log.models import Event
from provisioner.catalog import retention
from provisioner.catalog.models import SubmittedChange, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.catalog.sweeps.refresh import refresh_all
from provisioner.demo import seed
from provisioner.demo.company.company import Company
from provisioner.demo.company.studio import CompanySize
from provisioner.engine.models import Operation, Step
from provisioner.leases.sweeps import leases
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import next_to_transfer
from provisioner.notify.models import Notification
from provisioner.sites.queries import same_installation
from provisioner.workspaces.models import MOVING, Workspace
from tests.support.module_rows import Write, written_once

__all__ = ["written_once"]

SMALL = CompanySize(
    probe_days=2,
    people=40,
    templates=24,
    workspaces=120,
    build_share=0.04,
    deliveries=20,
)
# What is said of the time to come.
AHEAD = ("expires_at", "expiry", "purge_at", "due_at", "deadline_at", "next_poll_at")


def found_company() -> Company:
    """Return a company as of now, written."""
    seed.ensure_people()  # by the clock of now, and told by it
    system_user()
    made = Company(SMALL, now=timezone.now())
    made.found()
    return made


@pytest.fixture(scope="module")
def written(written_once: Write[Company]) -> Company:
    return written_once(found_company)


@pytest.fixture
def company(db: None, written: Company) -> Company:
    return written


@pytest.mark.integration
def test_every_state_is_there_and_all_of_it_has_happened(company: Company) -> None:
    now = company.studio.now
    assert set(Workspace.objects.values_list("state", flat=True)) == set(
        Workspace.State
    )
    ends = {Template.State.DELETING, Template.State.DELETED}
    states = set(Template.objects.values_list("state", flat=True))
    assert states == set(Template.State) - ends
    for model in (Workspace, Operation, Step, Event, SubmittedChange, Notification):
        for field in model._meta.concrete_fields:
            if isinstance(field, models.DateTimeField) and field.name not in AHEAD:
                late = model._default_manager.filter(**{f"{field.name}__gt": now})
                assert not late.exists(), f"{model.__name__}.{field.name}"


def test_mirrors_are_up_to_date_behind_and_failed(company: Company) -> None:
    up_to_date, behind, failed = Mirror.objects.order_by("pk")
    assert next_to_transfer(up_to_date) is None
    assert next_to_transfer(behind) == default_snapshot(behind.template)
    assert behind.snapshots.exists()
    assert (failed.state, failed.status_code) == ("failed", "mirror_not_peered")
    homes = {mirror.template.site.perforce_server for mirror in company.mirrors}
    assert all(
        same_installation(failed.site.perforce_server, server) for server in homes
    )


def test_rows_agree_with_each_other(company: Company) -> None:
    for workspace in Workspace.objects.prefetch_related("subject__operations"):
        running = [o for o in workspace.operations.all() if o.state == "running"]
        assert bool(running) == (workspace.state in MOVING), workspace
        has_volume = workspace.volume_uuid != ""
        if workspace.state == Workspace.State.RETIRED:
            assert not has_volume
        if workspace.state == Workspace.State.READY:
            assert has_volume
            assert workspace.snapshot.deleted_at is None
    for operation in Operation.objects.prefetch_related("steps"):
        states = {step.state for step in operation.steps.all()}
        if operation.state == Operation.State.SUCCEEDED:
            assert states <= {"done", "skipped"}, operation.pk
        elif operation.state == Operation.State.RUNNING:
            assert states & {"queued", "running"}, operation.pk
        else:
            assert "failed" in states, operation.pk
    for template in Template.objects.exclude(state=Template.State.NEW):
        assert default_snapshot(template) is not None


def test_sweeps_find_nothing_to_do_at_once(company: Company) -> None:
    now = company.studio.now
    assert refresh_all(now=now) == 0
    assert leases.retire_expired(now=now) == 0
    assert leases.purge_expired(now=now) == 0
    leases.tell_owners(now=now)
    assert not Notification.objects.filter(created_at__gt=now).exists()
    for template in Template.objects.all():
        assert retention.superfluous(template) == []


def test_a_company_grows_where_it_is(company: Company) -> None:
    there = Workspace.objects.count()
    deepcopy(company).grow(to=there + 40)
    assert Workspace.objects.count() == there + 40


def test_its_pages_open_for_whom_they_are(company: Company) -> None:
    hers = Workspace.objects.filter(owner__username="alice")
    one_of_each = hers.order_by("state", "pk").distinct("state")
    assert len(one_of_each) > 2
    for username in ("admin", "alice", "bob", "ci"):
        browser = Client()
        browser.force_login(User.objects.get(username=username))
        for workspace in one_of_each:
            page = browser.get(reverse("workspace-detail", args=[workspace.pk]))
            assert page.status_code == (404 if username == "ci" else 200)
        for name in ("workspace-list", "operation-list", "bisection-list"):
            assert browser.get(reverse(name)).status_code == 200
    for template in Template.objects.order_by("state", "pk").distinct("state"):
        page = browser.get(reverse("template-detail", args=[template.pk]))
        assert page.status_code == 200
