"""What is recorded of a client with each transfer, with both servers of the lab."""

from __future__ import annotations

import pytest

from provisioner.workspaces.models import Workspace
from tests.support.lab import built_template, lab_site, lab_template
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


@pytest.mark.integration
def test_what_is_opened_is_recorded_and_read_again_only_after_use(
    hers: Workspace, at_work: AtWork
) -> None:
    at_work.open_for_edit()
    at_work.file.write_text("mine\n")

    first = copied(hers)

    [opened] = first.opened
    assert (opened["action"], opened["user"]) == ("edit", "alice")
    assert opened["depot_file"].endswith("/src/file3.txt")
    assert first.accessed_at is not None
    second = copied(hers)
    assert (second.opened, second.accessed_at) == (first.opened, first.accessed_at)
    assert second.pk != first.pk
