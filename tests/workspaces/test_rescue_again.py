"""A retirement that is tried again writes no archive twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db.models.signals import post_save
from pytest_django import Settings

from provisioner.audit_log.models import Event
from provisioner.engine.models import Operation
from provisioner.sites.models import Site
from provisioner.workspaces.models import Rescue, Workspace
from tests.support.lab import Lab
from tests.support.retiring import retire
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)


def archives(workspace: Workspace) -> set[str]:
    area = Path(workspace.site.rescue_root) / workspace.owner.username
    return {str(path) for path in area.glob(f"*-{workspace.tag.hex[:6]}????")}


@pytest.fixture
def failed_later(
    lab: Lab,
    lab_site: Site,
    lab_workspace: Workspace,
    at_work: AtWork,
    settings: Settings,
) -> Workspace:
    """Its work is rescued, and its client could not be deleted then."""
    settings.STEP_GIVE_UP_SECONDS = 0
    at_work.leave_an_untracked_file()

    def once_it_is_rescued(instance: Event, **kwargs: object) -> None:
        if instance.kind == "work_rescued":
            lab.break_perforce({"command": "clients", "error": "no such luck"})

    post_save.connect(once_it_is_rescued, sender=Event)
    operation = retire(lab_workspace)
    post_save.disconnect(once_it_is_rescued, sender=Event)
    lab.break_perforce()
    assert operation.state == Operation.State.FAILED
    assert operation.steps.get(state="failed").name == "client"
    assert len(archives(lab_workspace)) == 1
    return lab_workspace


def test_what_is_rescued_already_is_not_archived_again(
    failed_later: Workspace,
) -> None:
    before = archives(failed_later)

    operation = retire(failed_later)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert archives(failed_later) == before
    first, again = Rescue.objects.filter(workspace=failed_later).order_by("pk")
    assert {again.directory} == before
    assert (again.archive_sha256, again.archived_files) == (*(first.archive_sha256, 1),)
    assert again.is_complete


@pytest.mark.parametrize("change", ["content", "another", "archive"])
def test_what_changed_since_is_archived_anew(
    failed_later: Workspace, change: str
) -> None:
    [before] = archives(failed_later)
    notes = failed_later.path / "src" / "notes.txt"
    if change == "content":
        times = notes.stat()
        notes.write_text("do not lose ME\n")
        os.utime(notes, ns=(times.st_atime_ns, times.st_mtime_ns))
    elif change == "another":
        (notes.parent / "more.txt").write_text("more\n")
    else:
        (Path(before) / "work.tar").write_bytes(b"")

    operation = retire(failed_later)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    [rescue] = Rescue.objects.filter(operation=operation)
    assert rescue.directory not in ("", before)
