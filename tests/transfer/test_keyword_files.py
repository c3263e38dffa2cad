"""Files whose keywords the server fills in, from a template to a transfer."""

from __future__ import annotations

import pytest

from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import Unsubmitted, Workspace
from tests.support.jobs import settle
from tests.support.lab import Lab
from tests.support.newer_snapshots import Others, bring, edit
from tests.support.work import AtWork

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(180, method="thread"),
]

NAME = "src/keys.txt"
TEXT = "$Id$\n$Revision$ $DateTime$\none\n2\n3\n4\n5\nlast\n"


@pytest.fixture
def keyword_file(others: Others) -> None:
    others.write(NAME, TEXT, kind="text+k")


@pytest.fixture
def at_keys(keyword_file: None, alice_at_work: AtWork) -> AtWork:
    """Alice in a workspace of a snapshot with a keyword file."""
    return alice_at_work


def says(at: AtWork) -> str:
    return (at.root / NAME).read_text()


def changes_found(at: AtWork) -> list[object]:
    """Return what p4 finds changed, missing or behind in a workspace."""
    everything = f"//{at.p4.client}/..."
    looks = (("reconcile", "-n", "-e", "-d"), ("diff", "-se"), ("sync", "-n"))
    with at.p4.at_exception_level(1):  # that there is nothing is a warning
        return [found for look in looks for found in at.p4.run(*look, everything)]


def test_a_clone_has_the_keywords_of_its_snapshot(
    at_keys: AtWork, others: Others
) -> None:
    assert f"$Id: {others.there}/{NAME}#1 $\n$Revision: #1 $ $DateTime: 2" in (
        says(at_keys)
    )
    # Flushed, compared and hashed: nothing about it looks like somebody's change.
    assert changes_found(at_keys) == []


def test_work_on_it_is_transferred_without_a_conflict(
    at_keys: AtWork, others: Others, lab: Lab
) -> None:
    """Every revision has other keywords in the same lines, and that is no change."""
    edit(at_keys, NAME, says(at_keys).replace("last", "mine"))
    others.write(NAME, TEXT.replace("one", "theirs"))
    others.publish(at_keys.workspace.template)

    transfer = bring(at_keys.workspace)

    assert not transfer.conflicts.exists()
    made = AtWork(transfer.workspace, lab)
    assert says(made).splitlines()[2:] == ["theirs", *"2345", "mine"]
    made.p4.run("submit", "-d", "both")
    assert "$Revision: #3 $" in says(made)
    assert changes_found(made) == []
    made.p4.disconnect()


def test_work_on_it_is_rescued_as_it_was_written(
    at_keys: AtWork, others: Others
) -> None:
    text = says(at_keys).replace("last", "mine")
    edit(at_keys, NAME, text)
    workspace = at_keys.workspace

    workspace_retire(
        by=workspace.owner,
        workspace=workspace,
        unsubmitted=Unsubmitted.RESCUE,
        purge=True,
    )
    settle(workspace)

    assert workspace.state == Workspace.State.RETIRED, workspace.status_message
    path = f"{others.there}/{NAME}"
    shelves = others.p4.run("changes", "-s", "shelved", path)
    printed = others.p4.run("print", "-q", f"{path}@={shelves[0]['change']}")
    assert "".join(printed) == text
