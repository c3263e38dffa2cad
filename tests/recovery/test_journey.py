"""A site is lost: opened work is restored at the other one, from the last transfer."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.accounts.models import User
from provisioner.copies.models import WorkspaceCopy
from provisioner.gateways import registry
from provisioner.lib.refusals import ActionRefused
from provisioner.limits.sweeps import measure_site
from provisioner.recovery.actions import workspace_recover
from provisioner.recovery.models import Recovery
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab, built_template, lab_site, lab_template
from tests.support.two_sites import at_work, copied, far_site, hers, lab
from tests.support.work import AtWork

__all__ = [
    "at_work",
    "built_template",
    "far_site",
    "hers",
    "lab",
    "lab_site",
    "lab_template",
]

pytestmark = pytest.mark.integration

OURS = (".p4config", ".cloneyardignore")


def tree(root: Path) -> dict[str, bytes]:
    """Return the contents of all files, without those that each workspace has."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".snapshot" not in path.parts and path.name not in OURS
    }


def opened(workspace: Workspace) -> list[tuple[str, str, str, int]]:
    gateway = registry.perforce(workspace.perforce_server)
    return sorted(
        (file.depot_file, file.action, file.type, file.revision)
        for file in gateway.changes.list_opened(workspace.client_name)
    )


def test_opened_work_survives_a_site(
    hers: Workspace, at_work: AtWork, lab: Lab
) -> None:
    at_work.open_for_edit()
    at_work.file.write_text("mine\n")
    new = at_work.root / "src" / "new.txt"
    new.write_text("added\n")
    at_work.p4.run("add", str(new))
    at_work.p4.run("delete", str(at_work.root / "src" / "file5.txt"))
    at_work.p4.run("sync", f"{at_work.root}/src/file7.txt#none")
    at_work.leave_an_untracked_file()
    copied(hers)
    had, were_opened = tree(hers.path), opened(hers)
    assert len(were_opened) == 3
    (hers.path / "src" / "later.txt").write_text("after the transfer\n")
    copy = WorkspaceCopy.objects.get()

    with pytest.raises(ActionRefused) as refused:
        workspace_recover(by=hers.owner, copy=copy)
    assert refused.value.code == "original_answers"
    lab.break_ontap({"path": "/api/*", "status": 500})
    measure_site(site_id=hers.site_id)
    made = settle(workspace_recover(by=hers.owner, copy=copy))

    assert made.state == Workspace.State.READY, made.status_message
    assert (made.owner, made.site.name, made.name) == (hers.owner, "far", hers.name)
    assert tree(made.path) == had
    assert opened(made) == were_opened
    assert made.client_name != hers.client_name
    assert f"P4CLIENT={made.client_name}" in (made.path / ".p4config").read_text()
    assert made.operations.get().findings["not_restored"] == []
    assert workspace_recover(by=hers.owner, copy=copy) == made  # nothing is doubled
    for step in made.operations.get().steps.filter(state="done"):
        perform_again(step)
    assert (tree(made.path), opened(made)) == (had, were_opened)
    assert Recovery.objects.count() == 1
    lab.break_ontap()
    assert opened(hers) == were_opened  # the original is left alone
    copied(hers)  # and its copy goes on


def test_an_administrator_confirms_that_the_original_is_stopped(
    hers: Workspace, at_work: AtWork
) -> None:
    copied(hers)
    copy = WorkspaceCopy.objects.get()
    admin = User.objects.filter(is_staff=True).latest("pk")

    with pytest.raises(ActionRefused):
        workspace_recover(by=hers.owner, copy=copy, is_stopped=True)
    made = workspace_recover(by=admin, copy=copy, is_stopped=True)

    assert made.owner == hers.owner
    assert settle(made).state == Workspace.State.READY, made.status_message


def test_a_restored_workspace_is_retired_like_others(
    hers: Workspace, at_work: AtWork
) -> None:
    copied(hers)
    admin = User.objects.filter(is_staff=True).latest("pk")
    copy = WorkspaceCopy.objects.get()
    made = settle(workspace_recover(by=admin, copy=copy, is_stopped=True))

    workspace_retire(by=admin, workspace=made, unsubmitted="discard", purge=True)

    assert settle(made).state == Workspace.State.RETIRED, made.status_message
