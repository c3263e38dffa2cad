"""What we ask of a server whose groups limit the rows of a command."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from provisioner.gateways.errors import NotFound, Refused
from tests.support.perforce_scene import PerforceScene, running_lab, scene_at

SUBMITTED = 30
MOST_ROWS = 10


@pytest.fixture(scope="module")
def limited() -> Iterator[PerforceScene]:
    """A server with more changes than anybody's command may read rows."""
    with running_lab() as target:
        for scene in scene_at(target):
            scene.submit({"first.txt": b"1\n"})
            for number in range(SUBMITTED):
                scene.submit({"other.txt": b"%d\n" % number})
            with scene.at_the_shell("none") as shell:
                form = f"Group:\trobots\n\nUsers:\n\t{scene.account.user}\n"
                shell.run("group", "-i", text=form)
                form = f"Group:\tall\n\nMaxScanRows:\t{MOST_ROWS}\n\n"
                shell.run("group", "-i", text=f"{form}Subgroups:\n\trobots\n")
            yield scene
            with scene.at_the_shell("none") as shell:
                shell.run("group", "-d", "all")


def test_a_change_is_found_by_its_number(limited: PerforceScene) -> None:
    name = limited.client_name()
    view = (f"{limited.folder}/first.txt //{name}/first.txt",)
    spec = limited.make_client(view=view)

    limited.gateway.files.flush(spec.name, change=1)

    assert limited.gateway.files.have_list(spec.name).count == 1
    assert limited.gateway.changes.is_submitted(1)
    with pytest.raises(NotFound):
        limited.gateway.files.flush(spec.name, change=SUBMITTED * 10)


def test_what_a_client_did_is_asked_since_its_snapshot(limited: PerforceScene) -> None:
    spec = limited.make_client("idle")
    newest = limited.gateway.changes.latest(())

    found = limited.gateway.changes.newest_work(spec.name, above=newest - MOST_ROWS)

    assert found.submitted_at is None
    with pytest.raises(Refused, match="higher MaxScanRows"):
        limited.gateway.changes.newest_work(spec.name, above=0)


def test_pending_changes_are_read_without_those_that_are_submitted(
    limited: PerforceScene,
) -> None:
    """A list without an end: it is as long as what the client has pending."""
    spec = limited.make_client("pending")
    made = [
        limited.gateway.changes.create_pending(spec.name, description=f"{number}")
        for number in range(3)
    ]

    found = limited.gateway.changes.list_pending(spec.name)

    assert [change.change for change in found] == made[::-1]
    for change in made:
        limited.gateway.changes.delete_pending(change, delete_shelf=False)


def test_what_is_watched_is_read_by_number(limited: PerforceScene) -> None:
    batch = limited.gateway.changes.submitted_after(2, at_most=5)

    assert [change.number for change in batch.changes] == [3, 4, 5, 6, 7]


def test_a_client_s_opened_files_are_asked_alone(limited: PerforceScene) -> None:
    with limited.at_the_shell("none") as shell:
        shell.run("group", "-d", "all")
    files = {f"{number}.txt": b"1\n" for number in range(MOST_ROWS + 1)}
    limited.submit(files)
    own = limited.make_client("own")
    author = limited.client_name("author")
    with limited.at_the_shell(author) as shell:
        shell.run("edit", *(f"{limited.folder}/{name}" for name in files))
        form = f"Group:\tall\n\nMaxScanRows:\t{MOST_ROWS}\n\n"
        shell.run("group", "-i", text=f"{form}Subgroups:\n\trobots\n")

    assert limited.gateway.changes.list_opened(own.name) == []
    with pytest.raises(Refused, match="higher MaxScanRows"):
        limited.gateway.changes.count_opened_by(limited.account.user)
