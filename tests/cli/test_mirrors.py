"""`cloneyard mirrors`, called as people call it."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.cli import cloneyard
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import (
    MirroredSnapshotFactory,
    MirrorFactory,
    SnapshotFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_mirrors_are_listed_and_an_owner_transfers_a_snapshot(
    snapshot: Snapshot, command_line: CommandLine
) -> None:
    none = command_line.run("mirrors")
    assert "No mirrors." in none.stderr
    mirror = MirrorFactory.create(template=snapshot.template, site__name="bangalore")
    MirroredSnapshotFactory.create(mirror=mirror, snapshot=snapshot)
    SnapshotFactory.create(template=snapshot.template, name="c120.b9", change=120)

    listed = command_line.run("mirrors", "main").stdout

    assert "bangalore  ready  100     1 snapshot  at-once" in listed
    [as_json] = printed(command_line.run("mirrors", "--json"))
    assert as_json["figures"]["newest"]["change"] == 100
    begun = ("mirrors", "transfer", "main", "bangalore")
    not_theirs = command_line.run(*begun)
    ended_with(not_theirs, cloneyard.REFUSED, saying="You may not do this")
    Template.objects.update(owner=User.objects.get(username="alice"))
    there = command_line.run(*begun, "--snapshot", snapshot.name)
    ended_with(there, cloneyard.REFUSED, saying="already at bangalore")
    nowhere = command_line.run("mirrors", "transfer", "main", "oslo")
    ended_with(nowhere, cloneyard.NOT_FOUND, saying="no mirror at “oslo”")
    hasty = command_line.run("mirrors", "transfer", "main")
    ended_with(hasty, cloneyard.USAGE, saying="takes TEMPLATE and SITE")

    started = command_line.run(*begun, "--snapshot", "c120.b9", "--no-wait")

    assert "c120.b9 is being transferred to bangalore." in started.stdout
    late = command_line.run(*begun, "--timeout", "1s")
    ended_with(late, cloneyard.REFUSED, saying="Something is under way")
    for words, offered in (
        (("mirrors", ""), "transfer"),
        (("mirrors", "transfer", ""), "main"),
        (("mirrors", "transfer", "main", ""), "bangalore"),
        (("mirrors", "-"), "--snapshot"),
    ):
        assert offered in command_line.run("complete", "--", *words).stdout.split()
