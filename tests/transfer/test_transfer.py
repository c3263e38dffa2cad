"""Transferring work: what arrives, what is left to decide, what stays as it was."""

from __future__ import annotations

import os
import subprocess

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot
from provisioner.demo.checks import left_behind
from provisioner.engine import workflow
from provisioner.engine.models import Operation, Step
from provisioner.engine.results import StepResult
from provisioner.lib.refusals import StepRefused
from provisioner.transfer.actions import workspace_transfer, workspace_transfer_abort
from provisioner.transfer.models import TransferOperation
from provisioner.transfer.refusals import NothingGoodNewer, NothingNewer, NothingToAbort
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.actions.retiring import (
    workspace_restore,
    workspace_retire,
    workspace_retry,
)
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import BeingTransferred, WorkspaceNotReady
from tests.gateways.hosts.trees import needs_root
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.newer_snapshots import (
    Others,
    add,
    bring,
    copies_left,
    described_in,
    edit,
    everything_about,
    new_change,
    opened_in,
    transfer_into,
)
from tests.support.requests import workspace_create
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lab_workspace(alice_at_work: AtWork) -> Workspace:
    return alice_at_work.workspace


def test_work_arrives_in_the_newer_snapshot(
    alice_at_work: AtWork, others: Others, lab_workspace: Workspace
) -> None:
    """As it was opened, with what others did merged, and the old one put away."""
    at, p4 = alice_at_work, alice_at_work.p4
    first = new_change(at, "a piece of work\n\twith two lines")
    second = new_change(at, "a piece of work\n\twith two lines")
    new_change(at, "nothing in it yet")
    edit(at, "src/file3.txt", "mine\n")
    edit(at, "src/file4.txt", "#!/bin/sh\n", "-c", first, "-t", "text+x")
    add(at, "src/new.txt", "new\n", "-c", second)
    p4.run("delete", "-c", second, str(at.root / "src/file5.txt"))
    p4.run("edit", "-c", first, str(at.root / "src/file6.txt"))
    p4.run(
        *("move", "-c", first),
        *(str(at.root / f"src/{name}.txt") for name in ("file6", "moved")),
    )
    edit(at, "src/file8.txt", "line of 8\nmine at the end\n")
    (at.root / "src/file9.txt").chmod(0o644)
    (at.root / "src/file9.txt").write_text("changed in place\n")
    (at.root / "src/notes.txt").write_text("do not lose me\n")
    shelved = new_change(at, "shelved, and stays")
    edit(at, "src/file7.txt", "shelved\n", "-c", shelved)
    p4.run("shelve", "-c", shelved)
    p4.run("revert", "-c", shelved, "//...")
    opened = opened_in(lab_workspace)
    others.write("src/file8.txt", "theirs before\nline of 8\n")
    others.write("src/theirs.txt", "of others\n")
    others.publish(lab_workspace.template)

    transfer = bring(lab_workspace, takes_untracked=True)

    made = transfer.workspace
    assert made.state == Workspace.State.READY, made.status_message
    assert not transfer.conflicts.exists()
    assert lab_workspace.state == Workspace.State.TRASHED, lab_workspace.status_message
    assert copies_left(made) == []
    texts = {path.name: path.read_text() for path in (made.path / "src").iterdir()}
    assert texts["theirs.txt"] == "of others\n"
    assert texts["file3.txt"] == "mine\n"
    assert texts["file8.txt"] == "theirs before\nline of 8\nmine at the end\n"
    assert texts["moved.txt"] == "line of 6\n"
    assert texts["file9.txt"] == "changed in place\n"
    assert texts["notes.txt"] == "do not lose me\n"
    assert not {"file5.txt", "file6.txt"} & texts.keys()
    arrived = opened_in(made)
    assert arrived.pop("file9.txt").action == "edit"
    descriptions = described_in(made)
    assert sorted(descriptions.values()) == [
        "a piece of work\n\twith two lines",
        "a piece of work\n\twith two lines",
        "nothing in it yet",
    ]
    assert {n: (f.action, f.type, f.user) for n, f in arrived.items()} == {
        n: (f.action, f.type, f.user) for n, f in opened.items()
    }
    assert {transfer.changes[f.change] for f in opened.values()} == {
        f.change for f in arrived.values()
    }
    assert arrived["new.txt"].change == arrived["file5.txt"].change
    assert arrived["moved.txt"].moved_file.endswith("src/file6.txt")
    assert transfer.counts["opened"] == 8
    assert transfer.counts["merged"] == 1
    assert transfer.counts["untracked"] == 1
    assert transfer.counts["left_changes"] == [int(shelved)]

    workspace_restore(by=lab_workspace.owner, workspace=lab_workspace)
    settle(lab_workspace)
    assert opened_in(lab_workspace).keys() == opened.keys()


def test_conflicts_are_listed_with_what_to_do_and_the_old_one_stays(
    alice_at_work: AtWork, others: Others, lab_workspace: Workspace
) -> None:
    at = alice_at_work
    edit(at, "src/file1.txt", "mine\n")
    edit(at, "src/file2.txt", "mine, of a file that goes\n")
    edit(at, "src/only-one.txt", "mine alone\n")
    add(at, "src/both.txt", "mine\n")
    add(at, "out/all", "mine, where the build writes\n", "-I")
    at.p4.run("delete", str(at.root / "src/file4.txt"))
    (at.root / "src/notes.txt").write_text("my notes\n")
    (at.root / "src/same.txt").write_text("the same\n")
    before = everything_about(lab_workspace)
    others.write("src/file1.txt", "theirs\n")
    others.delete("src/file2.txt")
    others.write("src/both.txt", "theirs\n")
    others.write("src/file4.txt", "theirs\n")
    others.write("src/notes.txt", "their notes\n")
    others.write("src/same.txt", "the same\n")
    others.publish(lab_workspace.template)

    transfer = bring(lab_workspace, takes_untracked=True)

    made = transfer.workspace
    assert made.state == Workspace.State.READY, made.status_message
    assert lab_workspace.state == Workspace.State.READY
    assert "stays until you retire it" in transfer.outcome
    assert everything_about(lab_workspace) == before
    assert copies_left(made) == []
    found = {
        c.path.removeprefix(f"{others.there}/"): c for c in transfer.conflicts.all()
    }
    assert {path: c.kind for path, c in found.items()} == {
        "src/file1.txt": "resolve",
        "src/file2.txt": "not_opened",
        "src/only-one.txt": "exclusive",
        "src/both.txt": "not_opened",
        "out/all": "built_there",
        "src/file4.txt": "changed_there",
        "src/notes.txt": "kept_aside",
    }
    root, old = made.path, lab_workspace.name
    assert (root / "src/file1.txt").read_text() == "mine\n"
    assert (root / f"src/file2.txt.from-{old}").read_text().startswith("mine, of a")
    assert (root / f"src/only-one.txt.from-{old}").read_text() == "mine alone\n"
    assert (root / "src/both.txt").read_text() == "theirs\n"
    assert (root / f"src/both.txt.from-{old}").read_text() == "mine\n"
    assert (root / "out/all").read_text() == "mine, where the build writes\n"
    assert "theirs" in (root / f"out/all.of-{made.snapshot.name}").read_text()
    assert (root / "src/notes.txt").read_text() == "their notes\n"
    assert (root / f"src/notes.txt.from-{old}").read_text() == "my notes\n"
    assert not (root / f"src/same.txt.from-{old}").exists()
    # What is said to be the way out is one.
    at.p4.client, at.p4.cwd = made.client_name, str(root)
    [_, keep_mine, _] = found["src/file1.txt"].commands
    at.p4.run(*keep_mine["run"].split()[1:])
    assert at.p4.run("resolved", f"{others.there}/src/file1.txt")


# What is beyond the steps of any new workspace.
STEPS = ("check", "shelve", "unshelve", "merge", "files", "proof", "shelves")


@pytest.fixture
def with_work(
    alice_at_work: AtWork, others: Others, lab_workspace: Workspace
) -> Workspace:
    """A workspace with work of several kinds in it, and a newer snapshot."""
    at = alice_at_work
    edit(at, "src/file1.txt", "mine\n")
    add(at, "src/new.txt", "new\n", "-c", new_change(at, "something new"))
    (at.root / "src/notes.txt").write_text("my notes\n")
    others.write("src/file2.txt", "theirs\n")
    others.publish(lab_workspace.template)
    return lab_workspace


def kill_after(name: str, made: Workspace) -> None:
    """Run the transfer up to this step, and lose the step's result."""
    perform = workflow.perform

    def killed(step: Step) -> StepResult | None:
        result = perform(step)
        if step.name == name and step.operation.kind == TransferOperation.TRANSFER:
            raise StepRefused("Killed.", code="killed")
        return result

    with pytest.MonkeyPatch.context() as killing:
        killing.setattr(workflow, "perform", killed)
        settle(made)
    assert made.status_code == "killed", (name, made.status_message)


@pytest.mark.integration
def test_aborted_after_any_step_it_leaves_no_trace_and_killed_there_it_goes_on(
    with_work: Workspace, lab: Lab
) -> None:
    before = everything_about(with_work)
    with pytest.raises(NothingToAbort):
        workspace_transfer_abort(by=with_work.owner, workspace=with_work)
    for name in STEPS:
        made = workspace_transfer(
            by=with_work.owner, workspace=with_work, takes_untracked=True
        )
        kill_after(name, made)

        workspace_transfer_abort(by=with_work.owner, workspace=made)
        settle(made)

        assert made.state == Workspace.State.RETIRED, (name, made.status_message)
        assert left_behind(made) == []
        assert copies_left(made) == []
        assert everything_about(with_work) == before, name

    lab.break_perforce(
        {"command": "shelve", "drop": "after", "times": 1},
        {"command": "unshelve", "drop": "after", "times": 1},
        {"command": "resolve", "drop": "after", "times": 1},
    )
    made = workspace_transfer(
        by=with_work.owner,
        workspace=with_work,
        takes_untracked=True,
        retires_source=False,
    )
    for name in STEPS:
        kill_after(name, made)
        workspace_retry(by=with_work.owner, workspace=made)
        with pytest.raises(BeingTransferred):
            workspace_retire(by=with_work.owner, workspace=with_work)
    settle(made)

    assert made.state == Workspace.State.READY, made.status_message
    transfer = transfer_into(made)
    assert not transfer.conflicts.exists()
    assert everything_about(with_work) == before
    assert copies_left(made) == []
    assert {n: f.action for n, f in opened_in(made).items()} == {
        "file1.txt": "edit",
        "new.txt": "add",
    }
    assert list(described_in(made).values()) == ["something new"]
    assert (made.path / "src/file1.txt").read_text() == "mine\n"
    assert (made.path / "src/file2.txt").read_text() == "theirs\n"
    assert (made.path / "src/notes.txt").read_text() == "my notes\n"
    names = [path.name for path in made.path.rglob("*")]
    assert not [name for name in names if "from-" in name or (name.startswith(".clone")
                and name != ".cloneyardignore")]  # fmt: skip


def test_a_comparison_that_is_repeated_finds_the_same(
    alice_at_work: AtWork, others: Others, lab_workspace: Workspace
) -> None:
    names = (f"{others.there}/src/{name}.txt" for name in ("file1", "branched"))
    alice_at_work.p4.run("integrate", *names)
    others.write("src/file2.txt", "theirs\n")
    others.publish(lab_workspace.template)
    made = workspace_transfer(by=lab_workspace.owner, workspace=lab_workspace)

    kill_after("proof", made)
    workspace_retry(by=lab_workspace.owner, workspace=made)
    settle(made)

    assert made.state == Workspace.State.READY, made.status_message
    [found] = transfer_into(made).conflicts.all()
    assert found.kind == "history"
    lab_workspace.refresh_from_db()
    assert lab_workspace.state == Workspace.State.READY


def test_what_is_not_resolved_stops_it_before_anything_is_copied(
    alice_at_work: AtWork, others: Others, lab_workspace: Workspace
) -> None:
    edit(alice_at_work, "src/file1.txt", "mine\n")
    with pytest.raises(NothingNewer):
        workspace_transfer(by=lab_workspace.owner, workspace=lab_workspace)
    others.write("src/file1.txt", "theirs\n")
    others.publish(lab_workspace.template)
    alice_at_work.p4.run("sync", "-q", str(alice_at_work.root / "src/file1.txt"))
    before = everything_about(lab_workspace)

    look = workspace_check(by=lab_workspace.owner, workspace=lab_workspace)
    settle(lab_workspace)

    look.refresh_from_db()
    assert look.state == Operation.State.SUCCEEDED, look.status_message
    assert look.findings is not None
    assert [f["action"] for f in look.findings["opened"]] == ["edit"]
    assert "p4 resolve" in look.findings["blockers"][0]
    assert lab_workspace.state == Workspace.State.READY
    transfer = bring(lab_workspace)
    assert transfer.workspace.status_code == "cannot_transfer"
    assert transfer.shelved_at is None
    assert copies_left(transfer.workspace) == []
    assert everything_about(lab_workspace) == before


@pytest.mark.integration
def test_what_lies_in_a_part_is_merged_with_what_that_part_is(
    alice_at_work: AtWork, others: Others, lab_workspace: Workspace
) -> None:
    edit(alice_at_work, "src/file8.txt", "line of 8\nmine at the end\n")
    alice_at_work.p4.run("delete", str(alice_at_work.root / "src/file4.txt"))
    others.write("src/file8.txt", "theirs before\nline of 8\n")
    others.write("src/file4.txt", "theirs\n")
    others.submit()
    template, path = lab_workspace.template, f"{others.there}/src/..."
    template_build(by=template.owner, template=template, paths=[path])
    settle(template)
    newest = template.snapshots.latest("created_at")
    assert newest.parts == [{"path": path, "change": newest.part_change}]
    assert newest.part_change != newest.change
    with pytest.raises(NothingGoodNewer, match="Choose a snapshot"):
        bring(lab_workspace)

    transfer = bring(lab_workspace, snapshot=newest)

    merged = (transfer.workspace.path / "src/file8.txt").read_text()
    assert merged == "theirs before\nline of 8\nmine at the end\n"
    [deleted_here] = transfer.conflicts.all()
    assert deleted_here.kind == "changed_there"
    assert f"@{newest.part_change}" in str(deleted_here.commands)


def test_a_workspace_that_is_not_ready_is_not_transferred(
    snapshot: Snapshot, alice: User
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)
    with pytest.raises(WorkspaceNotReady):
        workspace_transfer(by=alice, workspace=workspace)
    with pytest.raises(WorkspaceNotReady):
        workspace_check(by=alice, workspace=workspace)


@pytest.mark.integration
@needs_root
def test_files_that_have_no_room_are_no_conflicts(with_work: Workspace) -> None:
    """A retry brings them; a conflict would stay."""
    made = workspace_transfer(
        by=with_work.owner, workspace=with_work, takes_untracked=True
    )
    kill_after("merge", made)
    workspace_retry(by=with_work.owner, workspace=made)
    mount = ["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "none", str(made.path)]
    subprocess.run(mount, check=True)
    try:
        os.chown(made.path, made.uid, made.gid)
        settle(made)
    finally:
        subprocess.run(["umount", str(made.path)], check=True)

    assert made.status_code == "volume_out_of_inodes", made.status_message
    assert f"The volume {made.volume_name} has no inodes" in made.status_message
    workspace_retry(by=with_work.owner, workspace=made)
    settle(made)
    assert made.state == Workspace.State.READY, made.status_message
    assert not transfer_into(made).conflicts.exists()
    assert (made.path / "src/notes.txt").read_text() == "my notes\n"
