"""What Perforce knows of a client's use, asked without using it."""

from __future__ import annotations

import datetime as dt
import sqlite3

from tests.support.perforce_scene import PerforceScene

LONG_AGO = 1_600_000_000


def test_a_client_that_did_nothing_has_no_newest_work(
    perforce: PerforceScene,
) -> None:
    spec = perforce.make_client()

    newest = perforce.gateway.changes.newest_work(spec.name, above=0)

    assert newest.submitted_at is None
    assert newest.shelved_at is None
    assert newest.pending_at is None


def test_what_a_client_did_last_has_its_time(perforce: PerforceScene) -> None:
    began_at = dt.datetime.now(tz=dt.UTC) - dt.timedelta(minutes=5)
    perforce.submit({"a.txt": b"a\n"})
    author = perforce.client_name("author")

    newest = perforce.gateway.changes.newest_work(author, above=0)

    assert newest.submitted_at is not None
    assert newest.submitted_at > began_at
    assert newest.shelved_at is None
    change = perforce.pending_change(author)
    with perforce.at_the_shell(author) as shell:
        shell.run("edit", "-c", str(change), f"{perforce.folder}/a.txt")
        shell.run("shelve", "-c", str(change))
    newest = perforce.gateway.changes.newest_work(author, above=0)
    assert newest.shelved_at is not None
    assert newest.pending_at is not None
    assert newest.pending_at > began_at


def test_opened_files_are_counted_by_client(perforce: PerforceScene) -> None:
    perforce.submit({"a.txt": b"a\n", "b.txt": b"b\n"})
    author = perforce.client_name("author")
    with perforce.at_the_shell(author) as shell:
        shell.run("edit", f"{perforce.folder}/...")

    opened = perforce.gateway.changes.count_opened_by(perforce.account.user)

    assert opened[author] == 2
    assert perforce.gateway.changes.count_opened_by("nobody-of-that-name") == {}


def test_reading_a_client_leaves_its_access_date_alone(
    lab_perforce: PerforceScene,
) -> None:
    scene = lab_perforce
    scene.submit({"a.txt": b"a\n"})
    author = scene.client_name("author")
    assert scene.target.lab_root is not None
    age_client(scene, author)

    for _ in range(2):
        scene.gateway.changes.newest_work(author, above=0)
        scene.gateway.changes.count_opened_by(scene.account.user)
        [listed] = scene.gateway.clients.find_all(name_filter=author)

    assert listed.accessed_at == dt.datetime.fromtimestamp(LONG_AGO, tz=dt.UTC)


def age_client(scene: PerforceScene, name: str) -> None:
    """Make the lab's server believe that the client was unused for years."""
    assert scene.target.lab_root is not None
    database = scene.target.lab_root / "db.sqlite3"
    with sqlite3.connect(database, timeout=10) as connection:
        connection.execute(
            "UPDATE specs SET accessed=? WHERE kind='client' AND name=?",
            (LONG_AGO, name),
        )
    connection.close()
