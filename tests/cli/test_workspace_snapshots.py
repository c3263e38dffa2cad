"""`cloneyard workspace-snapshots`, `compare` and `take-back`."""

from __future__ import annotations

import time

import pytest

from provisioner.cli import cloneyard
from provisioner.engine.models import Operation
from provisioner.lib import clocks
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import ClientReading, WorkspaceSnapshot
from provisioner.workspaces.models import Workspace
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.workspaces import end

pytestmark = pytest.mark.django_db(transaction=True)

ENDS_WITHIN_SECONDS = 60.0


def run_with(
    command_line: CommandLine, workspace: Workspace, *words: str, **findings: object
) -> tuple[int | None, str, str]:
    """Run a command, and end its operation as a worker would."""
    process = command_line.start(*command_line.command(*words))
    running = workspace.operations.filter(state=Operation.State.RUNNING)
    late = time.monotonic() + ENDS_WITHIN_SECONDS
    while not (found := running.first()) and process.poll() is None:
        assert time.monotonic() < late
        time.sleep(0.1)
    if found:
        end(found, Operation.State.SUCCEEDED, findings=findings)
    out, err = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    return process.returncode, out, err


@pytest.mark.integration
def test_snapshots_are_listed_compared_and_taken_back(
    ready: Workspace, command_line: CommandLine
) -> None:
    Site.objects.update(shows_snapshots=True)
    none = command_line.run("compare", ready.name)
    ended_with(none, cloneyard.NOT_FOUND, saying=f"no snapshot of {ready.name}")
    taken = WorkspaceSnapshot.objects.create(
        workspace=ready, name="hourly.1", ontap_uuid="u", taken_at=clocks.database_now()
    )
    assert "hourly.1" in command_line.run("workspace-snapshots", ready.name).stdout
    [listed] = printed(command_line.run("workspace-snapshots", ready.name, "--json"))
    assert listed["id"] == taken.pk

    code, out, err = run_with(
        *(command_line, ready, "compare", ready.name),
        added=["new \x1b[1m"],
        changed=["a b.c"],
        removed=["old/"],
        counts={"added": 1, "changed": 3, "removed": 1},
        is_complete=False,
    )
    assert code == cloneyard.DONE, err
    assert out.splitlines()[1:] == ["A new ?[1m", "M a b.c", "D old/"]
    assert "2 more changed" in err
    assert "Not everything" in err

    words = ("take-back", ready.name, "a b.c", "--snapshot", str(taken.pk))
    code, out, err = run_with(
        *(command_line, ready, *words),
        files=1,
        kept=[["a b.c", "a b.c.newer-1"]],
        kept_count=1,
        failed=[["x", "Not a directory."]],
        failed_count=1,
    )
    assert code == cloneyard.FAILED, out
    assert "Newer content: a b.c.newer-1" in out
    assert "x: Not a directory." in err
    restoring = ("restore-snapshot", ready.name, "--snapshot", str(taken.pk))
    early = command_line.run(*restoring)
    ended_with(early, cloneyard.REFUSED, saying="not recorded yet")
    taken.reading = ClientReading.objects.create(workspace=ready)
    taken.save()
    code, out, err = run_with(
        *(command_line, ready, *restoring),
        failed=[],
        not_restored=["f.c: It is locked."],
    )
    assert code == cloneyard.FAILED, out
    assert f"{ready.name} is restored." in out
    assert "f.c: It is locked." in err
    outside = command_line.run("take-back", ready.name, "../x")
    ended_with(outside, cloneyard.REFUSED, saying="must not contain")
