"""What a workspace may go through, at servers that have names in other ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from django.test import Client

from provisioner.accounts.models import User
from provisioner.bisect.actions import bisection_start
from provisioner.bisect.models import Bisection
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.drift.models import Finding
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.perforce.connection import (
    Connection,
    TicketHolder,
    connected,
)
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.sites.models import Site
from provisioner.workspaces.models import Rescue, Workspace
from tests.support.bisections_in_lab import changes_of, wait_for
from tests.support.drift_scene import check_drift, long_ago, made_long_ago, resolve
from tests.support.factories import UserFactory
from tests.support.jobs import settle
from tests.support.lab import Lab, fill, running_lab
from tests.support.newer_snapshots import Others, bring, opened_in
from tests.support.requests import workspace_create
from tests.support.retiring import contents_of, restore, retire

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]

WORK = ("opened", "changed", "missing")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How files are called, and how people write what is called so.

    `shown` is how a page shows the directory.
    """

    directory: str
    shown: str
    typed: Callable[[str], str]

    def named(self, what: str) -> str:
        return os.fsdecode(f"{self.directory}/{what} é 50%.Txt".encode("latin-1"))


KINDS = {
    "bytes": Kind(directory="Größe", shown=r"Gr\xf6\xdfe", typed=str),
    "any case": Kind(directory="Size", shown="Size", typed=str.swapcase),
}


@pytest.fixture(scope="module", params=KINDS)
def name_of_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(name_of_kind: str) -> Kind:
    return KINDS[name_of_kind]


@pytest.fixture
def named(kind: Kind) -> Callable[[str], str]:
    return kind.named


@pytest.fixture(scope="module")
def lab(name_of_kind: str, lab: Lab) -> Iterator[Lab]:
    """The lab of all tests; or one that ignores case."""
    if name_of_kind == "bytes":
        yield lab
        return
    with running_lab("--ignore-case") as other:
        fill(other)
        yield other


@contextmanager
def at_the_shell(lab: Lab, *, user: str, client: str) -> Iterator[Connection]:
    account = PerforceAccount(
        port=lab.perforce["port"], user=user, password="lab-password"
    )
    with connected(account, holder=TicketHolder(), client=client) as shell:
        yield shell


def write(lab: Lab, others: Others, name: str, text: str) -> None:
    """Write a file with this text for bob's next submit."""
    path = others.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with at_the_shell(lab, user="bob", client=others.name) as shell:
        if is_new:
            path.write_text(text)
            shell.run("add", "-f", str(path))
        else:
            shell.run("edit", escape_path(str(path)))
            path.write_text(text)


def submit(lab: Lab, others: Others) -> None:
    """Submit what bob has opened; in a form the names would be lost."""
    with at_the_shell(lab, user="bob", client=others.name) as shell:
        shell.run("submit", "-d", "by others")


def publish(lab: Lab, others: Others, template: Template) -> None:
    submit(lab, others)
    template_build(by=template.owner, template=template)
    settle(template)
    assert template.state == Template.State.READY, template.status_message


@pytest.fixture
def alice(db: None, kind: Kind) -> User:
    return UserFactory.create(
        username="alice", uid=20001, gid=20000, p4_user=kind.typed("alice")
    )


@pytest.fixture
def built(
    lab: Lab,
    kind: Kind,
    named: Callable[[str], str],
    lab_template: Template,
    others: Others,
    jobs_emptied: None,
) -> Template:
    """A template of a small tree of such names."""
    for what in (*WORK, "theirs"):
        write(lab, others, named(what), f"{what}\n")
    Template.objects.filter(pk=lab_template.pk).update(
        view=f"{kind.typed(others.there)}/... //any/...",
        build_command="mkdir -p out; ls > out/all",
    )
    lab_template.refresh_from_db()
    publish(lab, others, lab_template)
    return lab_template


@pytest.fixture
def lab_workspace(built: Template, alice: User) -> Workspace:
    workspace = settle(workspace_create(by=alice, template=built))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    return workspace


@pytest.fixture
def work(
    lab_workspace: Workspace, lab: Lab, kind: Kind, others: Others
) -> dict[str, bytes]:
    """What alice has there, of every kind; with all the files of her workspace."""
    root, named = lab_workspace.path, kind.named
    opened, changed, missing = (root / named(what) for what in WORK)
    user, client = map(kind.typed, ("alice", lab_workspace.client_name))
    with at_the_shell(lab, user=user, client=client) as shell:
        shell.run("edit", kind.typed(f"{others.there}/{escape_path(named('opened'))}"))
        (root / named("new")).write_text("new\n")
        shell.run("add", "-f", str(root / named("new")))
    opened.write_text("mine\n")
    changed.chmod(0o644)
    changed.write_text("altered\n")
    missing.unlink()
    (root / named("untracked")).write_text("untracked\n")
    return contents_of(root)


def everything_is_shown(
    workspace: Workspace, signed_in: Callable[[User], Client]
) -> None:
    """Show it on the pages, in the API and on the administrator's site."""
    seen = {"view": ["//depot/\udce9/... //any/..."]}
    Workspace.objects.filter(pk=workspace.pk).update(client_seen=seen)
    client = signed_in(workspace.owner)
    for page in (f"/workspaces/{workspace.pk}/", f"/api/v1/workspaces/{workspace.pk}"):
        assert client.get(page, follow=True).status_code == 200
    admin = signed_in(UserFactory.create(is_staff=True, is_superuser=True))
    page = f"/admin/workspaces/workspace/{workspace.pk}/change/"
    assert admin.get(page).status_code == 200
    client = signed_in(workspace.owner)
    for operation in workspace.operations.all():
        assert client.get(f"/operations/{operation.pk}/").status_code == 200
        page = f"/api/v1/operations/{operation.pk}"
        assert client.get(page).status_code == 200


def test_work_is_found_rescued_and_restored(
    kind: Kind,
    named: Callable[[str], str],
    lab_workspace: Workspace,
    work: dict[str, bytes],
    signed_in: Callable[[User], Client],
) -> None:
    perforce = registry.perforce(lab_workspace.site.perforce_server)
    opened, have = (
        opened_in(lab_workspace),
        perforce.files.have_list(lab_workspace.client_name),
    )

    refused = retire(lab_workspace, unsubmitted="refuse")
    everything_is_shown(lab_workspace, signed_in)
    retired = retire(lab_workspace)
    everything_is_shown(lab_workspace, signed_in)
    restored = restore(lab_workspace)

    assert refused.state == Operation.State.REFUSED
    assert refused.findings is not None
    counts = {kind: c["count"] for kind, c in refused.findings["counts"].items()}
    assert counts == {"opened": 2, "changed": 1, "missing": 1, "untracked": 1}
    [changed] = refused.findings["changed"]
    assert changed["path"].endswith(rf"/{kind.shown}/changed \xe9 50%.Txt")
    assert retired.state == Operation.State.SUCCEEDED, retired.status_message
    rescue = Rescue.objects.get(workspace=lab_workspace)
    assert {path for shelf in rescue.shelves for path in shelf["files"]} == {
        file.depot_file for file in opened.values()
    }
    assert rescue.archived_files == 2
    assert restored.state == Operation.State.SUCCEEDED, restored.status_message
    assert restored.findings == {"not_restored": []}
    assert contents_of(lab_workspace.path) == work
    assert opened_in(lab_workspace).keys() == opened.keys()
    assert perforce.files.have_list(lab_workspace.client_name) == have


def test_work_is_transferred_to_a_newer_snapshot(
    kind: Kind,
    named: Callable[[str], str],
    lab_workspace: Workspace,
    work: dict[str, bytes],
    others: Others,
    lab: Lab,
    signed_in: Callable[[User], Client],
) -> None:
    write(lab, others, named("theirs"), "of others\n")
    publish(lab, others, lab_workspace.template)

    transfer = bring(lab_workspace, takes_untracked=True)
    made = transfer.workspace

    assert made.state == Workspace.State.READY, made.status_message
    assert not transfer.conflicts.exists()
    found = contents_of(made.path)
    assert found.pop(named("theirs")) == b"of others\n"
    # What was missing was not deleted in Perforce, so it is there again.
    assert found.pop(named("missing")) == b"missing\n"
    # Which names its own client.
    assert found.pop(".p4config") != work.pop(".p4config")
    assert found == {k: v for k, v in work.items() if k != named("theirs")}
    assert {file.action for file in opened_in(made).values()} == {"add", "edit"}
    everything_is_shown(made, signed_in)


def test_a_view_is_put_back_with_files_opened_in_it(
    lab_workspace: Workspace, work: dict[str, bytes], lab_site: Site, admin: User
) -> None:
    perforce = registry.perforce(lab_site.perforce_server)
    before = perforce.clients.find(lab_workspace.client_name)
    assert before is not None
    wide = f"//depot/tree/... //{before.name}/more/..."
    perforce.clients.save(replace(before, view=(*before.view, wide)))
    made_long_ago(lab_workspace)
    long_ago()
    check_drift(lab_site)
    found = Finding.objects.get(
        workspace=lab_workspace, kind=Finding.Kind.CLIENT_VIEW_DIFFERS
    )

    resolve(found, admin)

    assert found.resolved_at is not None, found.status_message
    again = perforce.clients.find(lab_workspace.client_name)
    assert again is not None
    assert again.view == before.view


def test_the_first_bad_change_is_found(
    built: Template,
    named: Callable[[str], str],
    others: Others,
    lab: Lab,
    alice: User,
) -> None:
    for number in range(3):
        write(lab, others, named("theirs"), f"{number}\n")
        submit(lab, others)
    changes = changes_of(built, others)
    command = "cat */theirs*; ! grep -q 1 */theirs*"

    bisection = wait_for(
        bisection_start(
            by=alice, template=built, good=changes[0], bad=changes[2], command=command
        )
    )

    assert bisection.state == Bisection.State.FOUND, bisection.status_message
    assert bisection.first_bad == changes[2]
