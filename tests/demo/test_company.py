"""The company of the demo: as the product itself would have written it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import models, transaction
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
from provisioner.notify.models import Notification
from provisioner.workspaces.models import MOVING, Workspace

SMALL = CompanySize(
    people=60, templates=24, workspaces=300, build_share=0.15, deliveries=60
)
# What is said of the time to come.
AHEAD = ("expires_at", "expiry", "purge_at", "due_at", "deadline_at", "next_poll_at")

pytestmark = pytest.mark.django_db


def company() -> Company:
    """Return a company as of now, written."""
    made = Company(SMALL, now=timezone.now())
    made.found()
    return made


def test_the_same_seed_and_moment_make_the_same_company() -> None:
    now = dt.datetime(2026, 11, 24, 15, 0, tzinfo=dt.UTC)
    seed.ensure_people()  # these come first, and their numbers with them
    system_user()
    pictures = []
    for _ in range(2):
        with transaction.atomic():
            Company(SMALL, now=now).found()
            pictures.append(
                (
                    list(Workspace.objects.order_by("pk").values_list()),
                    list(Step.objects.order_by("pk").values_list()),
                    list(Event.objects.order_by("pk").values_list("at", "kind", "via")),
                )
            )
            transaction.set_rollback(True)
    assert pictures[0] == pictures[1]


def test_every_state_is_there_and_all_of_it_has_happened() -> None:
    seed.ensure_people()  # by the clock of now, and told by it
    system_user()
    now = company().studio.now
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


def test_rows_agree_with_each_other() -> None:
    company()
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


def test_sweeps_find_nothing_to_do_at_once() -> None:
    now = company().studio.now
    assert refresh_all(now=now) == 0
    assert leases.retire_expired(now=now) == 0
    assert leases.purge_expired(now=now) == 0
    leases.tell_owners(now=now)
    assert not Notification.objects.filter(created_at__gt=now).exists()
    for template in Template.objects.all():
        assert retention.superfluous(template) == []


def test_a_company_grows_where_it_is() -> None:
    made = company()
    there = Workspace.objects.count()
    made.grow(to=there + 40)
    assert Workspace.objects.count() == there + 40


def test_its_pages_open_for_whom_they_are() -> None:
    company()
    alices = list(Workspace.objects.filter(owner__username="alice"))
    for username in ("admin", "alice", "bob", "ci"):
        browser = Client()
        browser.force_login(User.objects.get(username=username))
        for workspace in alices:
            page = browser.get(reverse("workspace-detail", args=[workspace.pk]))
            assert page.status_code == (404 if username == "ci" else 200)
        for name in ("workspace-list", "operation-list", "bisection-list"):
            assert browser.get(reverse(name)).status_code == 200
    for template in Template.objects.all():
        page = browser.get(reverse("template-detail", args=[template.pk]))
        assert page.status_code == 200
