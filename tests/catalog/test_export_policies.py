"""Who may mount what: the site's policy, and the one of what is being retired."""

from __future__ import annotations

import dataclasses
import uuid

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volumes import (
    ensure_export_policy,
    ensure_frozen_policy,
)
from provisioner.engine.models import Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import ExportRule
from provisioner.sites.models import Site
from provisioner.workspaces.sweeps import apply_exports, sweep_exports
from tests.support.lab import Lab

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = ExportRule(clients=("10.0.0.5",), superuser=("sys",))
OTHERS = ExportRule(clients=("10.0.0.0/24",), superuser=("none",))


@pytest.fixture
def site(lab_site: Site) -> Site:
    lab_site.export_policy = f"exports_{uuid.uuid4().hex[:8]}"
    lab_site.export_clients = ["10.0.0.0/24"]
    lab_site.worker_clients = ["10.0.0.5"]
    lab_site.save()
    return lab_site


@pytest.fixture
def run(site: Site, lab_template: Template, jobs_emptied: None) -> TemplateRun:
    build = template_build(by=lab_template.owner, template=lab_template)
    return TemplateRun(Step.objects.filter(operation=build)[0])


def changed(run: TemplateRun, **fields: list[str]) -> TemplateRun:
    """Return a later attempt at the step, at the site with these values."""
    Site.objects.filter(pk=run.site.pk).update(**fields)
    return TemplateRun(Step.objects.get(pk=run.step.pk))


def rules_of(site: Site, name: str) -> tuple[ExportRule, ...]:
    policy = registry.ontap(site).find_export_policy(name)
    assert policy is not None
    return policy.rules


def test_only_workers_have_superuser_access(run: TemplateRun) -> None:
    name = ensure_export_policy(run)

    assert rules_of(run.site, name) == (WORKERS, OTHERS)


def test_a_frozen_volume_is_for_workers_alone(run: TemplateRun) -> None:
    assert ensure_frozen_policy(run) == f"{run.site.export_policy}-frozen"

    assert rules_of(run.site, run.site.frozen_policy) == (WORKERS,)


def test_a_site_without_worker_clients_has_one_rule_for_all(run: TemplateRun) -> None:
    run = changed(run, worker_clients=[])
    all_of_them = ExportRule(clients=("10.0.0.0/24",), superuser=("sys",))

    assert rules_of(run.site, ensure_export_policy(run)) == (all_of_them,)
    assert rules_of(run.site, ensure_frozen_policy(run)) == (all_of_them,)


def test_a_host_that_is_named_as_both_is_a_worker(run: TemplateRun) -> None:
    run = changed(run, export_clients=["10.0.0.5"])

    assert rules_of(run.site, ensure_export_policy(run)) == (WORKERS,)


def test_changed_hosts_are_let_in_and_others_out(run: TemplateRun) -> None:
    ensure_export_policy(run)
    ensure_frozen_policy(run)
    run = changed(run, export_clients=["10.7.0.0/16"], worker_clients=["10.7.0.1"])

    workers = ExportRule(clients=("10.7.0.1",), superuser=("sys",))
    others = ExportRule(clients=("10.7.0.0/16",), superuser=("none",))
    assert rules_of(run.site, ensure_export_policy(run)) == (workers, others)
    assert rules_of(run.site, ensure_frozen_policy(run)) == (workers,)


def test_a_rule_that_somebody_added_by_hand_is_dropped(run: TemplateRun) -> None:
    ontap = registry.ontap(run.site)
    name = ensure_export_policy(run)
    policy = ontap.find_export_policy(name)
    assert policy is not None
    ontap.set_export_rules(
        policy.id, rules=(*policy.rules, ExportRule(clients=("0.0.0.0/0",)))
    )

    ensure_export_policy(run)

    assert rules_of(run.site, name) == (WORKERS, OTHERS)


def test_rules_that_are_right_are_not_written_again(run: TemplateRun, lab: Lab) -> None:
    name = ensure_export_policy(run)
    lab.break_ontap(
        {"method": "PATCH", "path": "*/export-policies/*", "drop": True},
    )

    assert ensure_export_policy(run) == name


# --- without waiting for a clone


def test_a_host_taken_off_the_row_is_shut_out_by_the_sweep(run: TemplateRun) -> None:
    name = ensure_export_policy(run)
    ensure_frozen_policy(run)
    run = changed(run, export_clients=[], worker_clients=["10.0.0.6"])

    apply_exports(site_id=run.site.pk)

    workers = ExportRule(clients=("10.0.0.6",), superuser=("sys",))
    assert rules_of(run.site, name) == (workers,)
    assert rules_of(run.site, run.site.frozen_policy) == (workers,)


def test_the_sweep_makes_no_policy(site: Site) -> None:
    apply_exports(site_id=site.pk)

    assert registry.ontap(site).find_export_policy(site.export_policy) is None


def test_the_sweep_runs_where_ontap_is_reached(site: Site, jobs_emptied: None) -> None:
    sweep_exports(timestamp=0)
    sweep_exports(timestamp=300)

    jobs = ProcrastinateJob.objects.filter(task_name="apply_exports")
    assert [job.queue_name for job in jobs] == ["storage"]


def test_an_ontap_that_does_not_answer_is_asked_again_later(
    run: TemplateRun, lab: Lab
) -> None:
    ensure_export_policy(run)
    lab.break_ontap({"method": "GET", "path": "*/export-policies*", "drop": True})

    apply_exports(site_id=run.site.pk)
    apply_exports(site_id=10**9)

    lab.break_ontap()
    assert rules_of(run.site, run.site.export_policy) == (WORKERS, OTHERS)


def test_rules_let_nobody_make_set_uid_files(run: TemplateRun) -> None:
    """An array's own default allows it; a rule changed by hand is put right."""
    ontap = registry.ontap(run.site)
    name = ensure_export_policy(run)
    policy = ontap.find_export_policy(name)
    assert policy is not None
    assert not any(rule.allow_suid for rule in policy.rules)
    lax = tuple(
        dataclasses.replace(rule, allow_suid=True, allow_device_creation=True)
        for rule in policy.rules
    )
    ontap.set_export_rules(policy.id, rules=lax)

    ensure_export_policy(run)

    assert rules_of(run.site, name) == (WORKERS, OTHERS)
