"""Three people submit for a while, and the template follows: nobody gets a bad one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from django.core import mail
from django.db.models.signals import post_save
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.actions.refresh import refresh_policy_save
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import ServerWatch, Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.catalog.sweeps.refresh import refresh_all
from provisioner.catalog.sweeps.watch import poll
from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.notify.models import Subscription
from provisioner.notify.sweeps.mails import sweep_notifications
from provisioner.workspaces.models import Workspace
from tests.support.behind import freshness_of
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.projects import Project
from tests.support.requests import workspace_create
from tests.support.submits import submit

pytestmark = pytest.mark.django_db(transaction=True)

QUIET = dt.timedelta(minutes=10)


@pytest.fixture
def people(db: None) -> dict[str, User]:
    """Three who submit, and dave, who wants to know how the template does."""
    return {
        name: UserFactory.create(username=name, email=f"{name}@example.com", gid=20000)
        for name in ("alice", "bob", "carol", "dave")
    }


@pytest.fixture
def template(
    project: Project, make_template: Callable[..., Template], people: dict[str, User]
) -> Template:
    """A template that refreshes after submits and wants tested snapshots."""
    project.submit_paths({f"{name}.txt": "ok\n" for name in ("alice", "bob")})
    template = make_template(
        project,
        build_command="tail -qn1 *.txt > all.out",
        test_command="! grep WRONG all.out",
        wanted_quality="tested",
    )
    template_build(by=template.owner, template=template)
    settle(template)
    assert template.state == Template.State.READY, template.status_message
    refresh_policy_save(
        by=template.owner,
        template=template,
        mode="on_change",
        quiet_seconds=int(QUIET.total_seconds()),
        every_seconds=0,
    )
    Subscription.objects.create(template=template, user=people["dave"])
    return template


@pytest.fixture
def handed_out(
    template: Template, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[int]]:
    """The change of the default at every moment: around each step, and publication."""
    seen: list[int] = []

    def look(**kwargs: Any) -> None:
        default = default_snapshot(template)
        assert default is not None
        seen.append(default.change)

    def perform(step: Step) -> StepResult | None:
        look()
        result = really_perform(step)
        look()
        return result

    really_perform = workflow.perform
    monkeypatch.setattr(workflow, "perform", perform)
    post_save.connect(look, sender=Snapshot)
    look()
    yield seen
    post_save.disconnect(look, sender=Snapshot)


def follow(template: Template) -> Operation:
    """Poll the server, wait until it is quiet, and have built what is due then."""
    server = template.site.perforce_server
    watch, _ = ServerWatch.objects.get_or_create(server=server)
    poll(watch)
    watch.refresh_from_db()
    assert not watch.last_error, watch.last_error
    assert refresh_all(now=timezone.now()) == 0, "it is not quiet yet"
    assert refresh_all(now=timezone.now() + QUIET) == 1
    assert refresh_all(now=timezone.now() + QUIET) == 0, "one build at a time"
    settle(template)
    assert refresh_all(now=timezone.now() + QUIET) == 0, "each change once"
    return template.operations.latest("pk")


def workspace_of(person: User, template: Template) -> Workspace:
    workspace = settle(workspace_create(by=person, template=template))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


def new_mails() -> list[tuple[str, str]]:
    """Send what is due, twice; return what that is: to whom, and the subject."""
    mail.outbox.clear()
    for _ in range(2):
        sweep_notifications(timestamp=0)
    return sorted((message.to[0], str(message.subject)) for message in mail.outbox)


@pytest.mark.integration
def test_templates_follow_and_a_broken_change_reaches_nobody(
    lab: Lab,
    project: Project,
    people: dict[str, User],
    template: Template,
    handed_out: list[int],
) -> None:
    def change(name: str, text: str, *, by: str) -> int:
        path = f"//depot/{project.name}/{name}.txt"
        return submit(lab, path=path, text=f"{text}\n", user=by)

    first = template.snapshots.get()
    workspaces = [workspace_of(people["alice"], template)]

    # All three submit: one refresh for all that came.
    change("alice", "more", by="alice")
    change("bob", "more", by="bob")
    newest = change("carol", "new", by="carol")
    assert follow(template).state == Operation.State.SUCCEEDED
    second = default_snapshot(template)
    assert second is not None
    assert (second.change, second.quality) == (newest, "tested")
    workspaces.append(workspace_of(people["bob"], template))
    assert new_mails() == []

    # What bob breaks is published with its mark, and told to those who may mend it.
    change("alice", "fine", by="alice")
    broken_at = change("bob", "WRONG", by="bob")
    operation = follow(template)
    assert (operation.state, operation.status_code) == ("failed", "test_failed")
    broken = operation.snapshots.get()
    assert (broken.change, broken.quality) == (broken_at, "failed")
    freshness = freshness_of(template)
    assert freshness is not None
    assert (freshness.changes, freshness.by) == (2, "alice and bob")
    workspaces.append(workspace_of(people["carol"], template))
    failed = f"{template.name} failed its tests at change {broken_at}"
    concerned = ("alice", "bob", "dave")
    assert new_mails() == [(f"{name}@example.com", failed) for name in concerned]
    assert all("ends with:\n\n    WRONG\n" in message.body for message in mail.outbox)
    chosen = workspace_create(by=people["carol"], template=template, snapshot=broken)
    workspaces.append(settle(chosen))

    # What carol mends is what everybody gets from then on.
    mended_at = change("bob", "right", by="carol")
    assert follow(template).state == Operation.State.SUCCEEDED
    mended = default_snapshot(template)
    assert mended is not None
    assert (mended.change, mended.quality) == (mended_at, "tested")
    recovered = f"{template.name} recovered at change {mended_at}"
    assert new_mails() == [(f"{name}@example.com", recovered) for name in concerned]

    changes = [first.change, second.change, mended.change]
    assert [number for number, _ in groupby(handed_out)] == changes
    assert [w.snapshot for w in workspaces] == [first, second, second, broken]
    perforce = registry.perforce(template.site.perforce_server)
    for workspace in workspaces:
        have, pin = perforce.files.have_list(workspace.client_name), workspace.snapshot
        assert (have.count, have.digest) == (pin.have_count, pin.have_digest)
    lines = [w.path.joinpath("bob.txt").read_text().split() for w in workspaces]
    good = ["ok", "more"]
    assert lines == [["ok"], good, good, [*good, "WRONG"]]
