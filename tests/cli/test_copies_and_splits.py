"""`cloneyard copies`, `copy`, `restore --site` and `split`."""

from __future__ import annotations

import datetime as dt

import pytest

from provisioner.cli import cloneyard
from provisioner.copies.models import CopiedSnapshot, WorkspaceCopy
from provisioner.lib import clocks
from provisioner.sites.models import SiteCapacity
from provisioner.storage.models import SplitPolicy
from provisioner.workspaces.models import Workspace
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import (
    CopyRuleFactory,
    MirroredSnapshotFactory,
    MirrorFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def copied(ready: Workspace) -> WorkspaceCopy:
    mirror = MirrorFactory.create(template=ready.template, site__name="bangalore")
    MirroredSnapshotFactory.create(mirror=mirror, snapshot=ready.snapshot)
    CopyRuleFactory.create(mirror=mirror)
    copy = WorkspaceCopy.objects.create(
        workspace=ready,
        site=mirror.site,
        state="ready",
        volume_uuid="v",
        relationship_uuid="r",
    )
    now = clocks.database_now()
    CopiedSnapshot.objects.create(copy=copy, taken_at=now, arrived_at=now)
    return copy


def test_copies_are_listed_transferred_and_restored(
    ready: Workspace, copied: WorkspaceCopy, command_line: CommandLine
) -> None:
    name = ready.name
    shown = command_line.run("copies", name).stdout.split()
    assert [name, "bangalore", "ready"] == shown[5:8]
    [listed] = printed(command_line.run("copies", "--json"))
    assert listed["id"] == copied.pk
    for words in (("copy", name, "oslo"), ("restore", name, "--site", "oslo")):
        nowhere = command_line.run(*words)
        ended_with(nowhere, cloneyard.NOT_FOUND, saying="has no copy at “oslo”")
    half = command_line.run("restore", name, "--original-is-stopped")
    ended_with(half, cloneyard.USAGE, saying="need --site")

    # Its site works, so only an administrator may say that the original is stopped.
    restore = ("restore", name, "--site", "bangalore")
    in_use = command_line.run(*restore)
    ended_with(in_use, cloneyard.REFUSED, saying="answers, so “hers” can be used")
    SiteCapacity.objects.create(
        site=ready.site,
        status_message="ONTAP could not be reached.",
        failing_since=clocks.database_now() - dt.timedelta(hours=1),
    )
    made = command_line.run(*restore, "--name", "saved", "--no-wait", "--json")
    assert printed(made)["name"] == "saved", made.stderr
    assert Workspace.objects.get(name="saved").site == copied.site

    begun = command_line.run("copy", name, "bangalore", "--no-wait")
    assert f"{name} is being copied to bangalore." in begun.stdout, begun.stderr


def test_a_split_is_previewed_begun_and_stopped(
    ready: Workspace, command_line: CommandLine
) -> None:
    preview = command_line.run("split", ready.name, "--preview")
    assert ready.snapshot.name in preview.stdout, preview.stderr
    refused = command_line.run("split", ready.name)
    ended_with(refused, cloneyard.REFUSED, saying="Owners may not split")
    SplitPolicy.objects.create(site=ready.site, owners_may_split=True)
    none = command_line.run("split", ready.name, "--stop")
    ended_with(none, cloneyard.REFUSED, saying="is not being split")

    begun = command_line.run("split", ready.name, "--no-wait")

    assert f"{ready.name} is being split." in begun.stdout, begun.stderr
    both = command_line.run("split", ready.name, "--preview", "--stop")
    assert both.returncode == cloneyard.USAGE
