"""The company of the demo: as the product itself would have written it."""

from __future__ import annotations

from collections import Counter
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
from provisioner.dashboard.troubles import of_sandboxes
from provisioner.demo import seed
from provisioner.demo.company.company import Company
from provisioner.demo.company.sandboxes import ended
from provisioner.demo.company.studio import CompanySize
from provisioner.drills.models import Drill, DrillPlan
from provisioner.engine.models import Operation, Step
from provisioner.insight.configuration import facts_of
from provisioner.insight.queries import configurations_visible_to, servers_to_read
from provisioner.insight.rules import Outcome as Verdicts
from provisioner.insight.rules import judged
from provisioner.insight.sweeps import CONFIGURATION_EVERY
from provisioner.leases.sweeps import leases
from provisioner.lib.comparisons import Outcome
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import next_to_transfer
from provisioner.notify.models import Notification
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.reports import compared
from provisioner.recipes.models import (
    Checkpoint,
    CheckpointPlan,
    Verification,
    VerificationPlan,
)
from provisioner.recipes.retention import Kept, to_remove
from provisioner.sandboxes.models import Sandbox
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


def test_rules_find_all_there_is_in_its_servers_configurations(
    company: Company,
) -> None:
    admin = User.objects.get(username="admin")
    found = {
        each.server_id: [verdict.outcome for _, verdict in judged(facts_of(each))]
        for each in configurations_visible_to(admin)
    }
    looked_after, neglected = (
        Counter(found[server.pk])
        for server in (company.places.home.perforce_server, company.places.builds)
    )
    assert len(found) == 2
    assert set(looked_after) == {Verdicts.ADVICE, Verdicts.GOOD}
    assert set(neglected) == set(Verdicts)
    assert neglected[Verdicts.ADVICE] > looked_after[Verdicts.ADVICE]
    assert not servers_to_read(older_than=CONFIGURATION_EVERY).filter(pk__in=found)


def test_copies_of_the_server_left_what_the_product_would_have_left(
    company: Company,
) -> None:
    now = company.studio.now
    for model in (Sandbox, Checkpoint, Verification, Drill, QualificationRun):
        for field in model._meta.concrete_fields:
            if isinstance(field, models.DateTimeField) and field.name not in AHEAD:
                late = model._default_manager.filter(**{f"{field.name}__gt": now})
                assert not late.exists(), f"{model.__name__}.{field.name}"
    for sandbox in Sandbox.with_retired.all():
        assert sandbox.created_at < ended(sandbox) <= now, sandbox
    there = list(Checkpoint.objects.filter(removed_at__isnull=True))
    plan = CheckpointPlan.objects.get()
    assert plan.keep_daily < len(there) <= plan.keep_daily + plan.keep_weekly
    assert not to_remove(
        [
            Kept(number=row.pk, taken_at=row.sandbox.created_at, is_proven=True)
            for row in there
        ],
        keep_daily=plan.keep_daily,
        keep_weekly=plan.keep_weekly,
    )
    assert {drill.outcome for drill in Drill.objects.select_related("sandbox")} == {
        *("Passed", "Failed", "Old copy"),
    }
    assert of_sandboxes() == []
    drilled = DrillPlan.objects.get()
    assert set(drilled.replicas) == {"prod_db", "prod_journal", "prod_depot"}
    for made_by in (plan, drilled, VerificationPlan.objects.get()):
        assert made_by.is_on
        assert Event.objects.filter(message=made_by.status).exists(), made_by
    for run in QualificationRun.objects.all():
        assert run.operations.exists()
    for sandbox in Sandbox.with_retired.all():
        assert sandbox.volumes.count() == 3
    before, after = QualificationRun.objects.filter(profile="branchsubmit").order_by(
        "created_at"
    )
    rate = next(
        each for each in compared(before, after) if each.figure.code == "commit_rate"
    )
    assert rate.comparison.outcome == Outcome.BETTER


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


def test_pages_of_the_server_open_for_administrators(company: Company) -> None:
    browser = Client()
    browser.force_login(User.objects.get(username="admin"))
    addresses = [
        *map(reverse, ("checkpoint-list", "verification-list", "drill-list")),
        *map(reverse, ("sandbox-list", "sandbox-setup", "qualification-list")),
        reverse("configuration-list"),
    ]
    for kind, rows in (
        (
            "sandbox-detail",
            Sandbox.with_retired.order_by("purpose").distinct("purpose"),
        ),
        ("verification-detail", Verification.objects.all()[:1]),
        ("qualification-detail", QualificationRun.objects.all()),
        ("qualification-report", QualificationRun.objects.all()),
    ):
        addresses += [reverse(kind, args=[row.pk]) for row in rows]
    for address in addresses:
        assert browser.get(address).status_code == 200, address
