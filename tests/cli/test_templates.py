"""`cloneyard template` and `snapshot`, called as people call them."""

from __future__ import annotations

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot
from provisioner.cli import cloneyard
from tests.support.command_line import CommandLine, ended_with, printed
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owned(snapshot: Snapshot, command_line: CommandLine) -> Template:
    """A template of whoever calls the program."""
    Template.objects.update(owner=User.objects.get(username="alice"))
    return Template.objects.get()


def test_an_owner_uses_releases_and_withdraws_snapshots(
    owned: Template, snapshot: Snapshot, command_line: CommandLine
) -> None:
    number = str(snapshot.pk)
    later = SnapshotFactory.create(template=owned, change=120)
    hasty = command_line.run("snapshot", "use", number)
    ended_with(hasty, cloneyard.USAGE, saying="Say why with --reason")

    used = command_line.run("snapshot", "use", number, "--reason", "The show.")
    assert "by alice: The show." in used.stdout
    assert default_snapshot(owned) == snapshot
    command_line.run("snapshot", "label", number, "Alpha 3")
    listed = command_line.run("snapshots", "main").stdout
    assert "default, held  Alpha 3" in listed
    command_line.run("snapshot", "release", number)
    assert default_snapshot(owned) == later

    command_line.run("snapshot", "withdraw", str(later.pk), "--reason", "It is wrong.")
    asked = command_line.run("new", "main", "--snapshot", str(later.pk))
    ended_with(asked, cloneyard.REFUSED, saying="It is wrong.")


def test_an_owner_renames_archives_and_hands_over_a_template(
    owned: Template, command_line: CommandLine
) -> None:
    UserFactory.create(username="bob")
    renamed = command_line.run("template", "rename", "main", "Main line")
    assert "Main line" in renamed.stdout
    command_line.run("template", "archive", "main", "--reason", "Use release.")
    assert "main" not in command_line.run("templates").stdout
    assert "archived" in command_line.run("templates", "--archived").stdout
    refused = command_line.run("new", "main")
    ended_with(refused, cloneyard.REFUSED, saying="is archived")
    assert "Use release." in command_line.run("template", "show", "main").stdout
    command_line.run("template", "unarchive", "main")
    handed = printed(command_line.run("template", "owner", "main", "bob", "--json"))
    assert handed["owner"] == "bob"

    late = command_line.run("template", "rename", "main", "Mine")
    ended_with(late, cloneyard.REFUSED, saying="You may not do this")
    hasty = command_line.run("template", "rename", "main")
    ended_with(hasty, cloneyard.USAGE, saying="takes the new value")
    nothing = command_line.run("template", "show", "nope")
    ended_with(nothing, cloneyard.NOT_FOUND, saying="There is no template")


def test_an_administrator_sees_what_needs_a_template_before_it_is_deleted(
    owned: Template, command_line: CommandLine
) -> None:
    alice = User.objects.get(username="alice")
    not_theirs = command_line.run("template", "delete", "main")
    ended_with(not_theirs, cloneyard.REFUSED, saying="You may not do this")
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    workspace_create(by=alice, template=owned, name="mine")

    needs = command_line.run("template", "needs", "main").stdout
    refused = command_line.run("template", "delete", "main")

    assert "1 workspaces: mine" in needs
    ended_with(refused, cloneyard.REFUSED, saying="still needed by 1 workspace")
