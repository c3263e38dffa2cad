"""Nobody gets a clone of files that they may not read in Perforce."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.gateways import registry
from provisioner.gateways.perforce.specs import parse_client_spec
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.lab import DEPOT, Lab
from tests.support.protections import Protect, protect
from tests.support.requests import workspace_create

__all__ = ["protect"]


pytestmark = pytest.mark.django_db(transaction=True)

SECRET = f"list user alice * -//depot/{DEPOT}/src/..."


@pytest.fixture
def owner(transactional_db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@pytest.fixture
def get(
    owner: User, published_template: Template, run_jobs: Callable[[], None]
) -> Callable[..., Workspace]:
    """Return a function that asks for a workspace, runs the jobs and returns it."""

    def make(**fields: Any) -> Workspace:
        workspace = workspace_create(by=owner, template=published_template, **fields)
        run_jobs()
        workspace.refresh_from_db()
        return workspace

    return make


def assert_nothing_was_made(workspace: Workspace) -> None:
    ontap = registry.ontap(workspace.site)
    assert ontap.find_volume(workspace.volume_name) is None
    if workspace.client_name:
        perforce = registry.perforce(workspace.site.perforce_server)
        assert perforce.clients.find(workspace.client_name) is None


def test_who_may_read_everything_gets_a_clone(
    get: Callable[..., Workspace],
) -> None:
    workspace = get()

    assert workspace.state == Workspace.State.READY, workspace.status_message


@pytest.mark.parametrize("purpose", Workspace.Purpose.values)
def test_who_may_not_read_a_part_gets_nothing(
    get: Callable[..., Workspace], protect: Protect, purpose: str
) -> None:
    protect(SECRET)

    workspace = get(purpose=purpose)

    assert workspace.state == Workspace.State.FAILED
    assert workspace.status_code == "not_readable"
    assert workspace.status_message.startswith(
        f"alice may not read //depot/{DEPOT}/src/... in Perforce, which is part of "
        "this template."
    )
    assert_nothing_was_made(workspace)


def test_with_the_right_given_it_goes_on(
    get: Callable[..., Workspace],
    protect: Protect,
    owner: User,
    run_jobs: Callable[[], None],
) -> None:
    protect(SECRET)
    workspace = get()
    protect(SECRET, f"read user alice * //depot/{DEPOT}/...")

    workspace_retry(by=owner, workspace=workspace)
    run_jobs()

    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_what_is_hidden_from_others_does_not_matter(
    get: Callable[..., Workspace], protect: Protect
) -> None:
    protect(SECRET.replace("alice", "carol"), "list user alice * -//other/...")

    assert get().state == Workspace.State.READY


@pytest.mark.parametrize("files", ["key", "txt"])
def test_an_exclusion_counts_where_a_file_of_the_snapshot_is_under_it(
    get: Callable[..., Workspace], protect: Protect, files: str
) -> None:
    """Such as -//.../*.key, which many sites have."""
    protect(f"list user alice * -//.../*.{files}")

    workspace = get()

    if files == "key":
        assert workspace.state == Workspace.State.READY, workspace.status_message
    else:
        assert workspace.status_code == "not_readable"
        assert "may not read //.../*.txt in" in workspace.status_message
        assert_nothing_was_made(workspace)


def test_what_nothing_grants_is_refused_whether_or_not_there_are_files(
    get: Callable[..., Workspace], protect: Protect
) -> None:
    protect(
        f"read user alice * //depot/{DEPOT}/src/...",
        f"list user alice * -//depot/{DEPOT}/....key",
        after=False,
    )

    assert get().status_code == "not_readable"


def test_what_the_pinned_view_leaves_out_does_not_matter(
    get: Callable[..., Workspace], protect: Protect, published_template: Template
) -> None:
    """The view of the snapshot counts; the template's may have changed since."""
    published_template.view = "//depot/elsewhere/... //any/..."
    published_template.save()
    protect("list user alice * -//depot/elsewhere/...")

    workspace = get()

    assert workspace.state == Workspace.State.READY, workspace.status_message
    [line] = parse_client_spec(workspace.snapshot.client_spec).view
    assert line.startswith(f"//depot/{DEPOT}/... ")


def test_a_right_by_group_counts(
    get: Callable[..., Workspace], protect: Protect, lab: Lab
) -> None:
    p4 = lab.as_admin()
    group = f"readers-{uuid.uuid4().hex[:8]}"
    p4.input = f"Group:\t{group}\n\nUsers:\n\talice\n"
    p4.run("group", "-i")
    p4.disconnect()
    protect(f"read group {group} * //depot/...", after=False)

    assert get().state == Workspace.State.READY


def test_a_user_whom_perforce_does_not_know_gets_nothing(
    published_template: Template, run_jobs: Callable[[], None]
) -> None:
    for purpose in Workspace.Purpose.values:
        workspace = workspace_create(
            by=UserFactory.create(), template=published_template, purpose=purpose
        )
        run_jobs()
        workspace.refresh_from_db()
        assert workspace.status_code == "p4_user_unknown"
        assert_nothing_was_made(workspace)


def as_plain_admin(lab: Lab) -> None:
    """Let Cloneyard's account be one that is admin and not super."""
    p4 = lab.as_admin()
    depot.create_p4_user(p4, user="robot", password=lab.perforce["password"])
    p4.disconnect()
    PerforceServer.objects.update(p4user="robot")


def test_without_an_answer_there_is_no_clone(
    get: Callable[..., Workspace],
    protect: Protect,
    lab: Lab,
    published_template: Template,
) -> None:
    as_plain_admin(lab)
    protect("admin user robot * //...")

    workspace = get()

    assert workspace.status_code == "read_access_unknown"
    assert "give our account robot super, or admin" in workspace.status_message
    assert_nothing_was_made(workspace)


def test_an_admin_is_enough_where_the_server_lets_it_look(
    get: Callable[..., Workspace],
    protect: Protect,
    lab: Lab,
    published_template: Template,
) -> None:
    as_plain_admin(lab)
    protect("admin user robot * //...")
    p4 = lab.as_admin()
    p4.run("configure", "set", "dm.protects.allow.admin=1")
    try:
        workspace = get()
    finally:
        p4.run("configure", "unset", "dm.protects.allow.admin")
        p4.disconnect()

    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_a_server_that_is_not_to_be_asked(
    get: Callable[..., Workspace], protect: Protect, published_template: Template
) -> None:
    PerforceServer.objects.update(checks_read_access=False)
    protect(SECRET)

    workspace = get()

    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_rights_that_hold_at_some_hosts_count_where_the_server_says_which(
    get: Callable[..., Workspace], protect: Protect, published_template: Template
) -> None:
    protect("write user alice 10.0.0.5 //...", after=False)
    assert get(name="first").status_code == "not_readable"

    PerforceServer.objects.update(read_access_host="10.0.0.5")
    assert get(name="second").state == Workspace.State.READY
