"""`manage.py backup` and `backup_drill`: a dump is restored beside the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from provisioner.accounts.models import User
from provisioner.workspaces.models import Workspace
from tests.support.requests import workspace_create

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def dump(tmp_path: Path, workspace: Workspace) -> Path:
    """A dump of a database with one workspace, and the event that it was asked for."""
    path = tmp_path / "nightly.dump"
    call_command("backup", path)
    return path


def databases() -> list[str]:
    with connection.cursor() as cursor:
        # Beside ours alone: others run tests on the same server.
        cursor.execute(
            "SELECT datname FROM pg_database "
            "WHERE datname = current_database() || '_drill'"
        )
        return [name for (name,) in cursor.fetchall()]


def test_it_says_what_is_in_it_and_what_is_newer(
    dump: Path, alice: User, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = workspace_create(by=alice, template=workspace.template, name="newer")
    workspaces = list(Workspace.objects.order_by("pk").values())

    call_command("backup_drill", dump)

    said = capsys.readouterr().out
    assert "workspaces           1 restored         2 now" in said
    assert f"drift would adopt them: {newer.name}." in said
    assert "s ago." in said
    assert "Run migrate" not in said
    assert list(Workspace.objects.order_by("pk").values()) == workspaces
    assert databases() == []


def test_only_its_owner_reads_it_and_it_is_whole(dump: Path) -> None:
    assert dump.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in dump.parent.iterdir()] == [dump.name]

    with pytest.raises(CommandError, match="was not dumped"):
        call_command("backup", dump / "below-a-file")


def test_one_that_is_too_old_fails(dump: Path) -> None:
    with pytest.raises(CommandError, match="older than 1e-09 hours"):
        call_command("backup_drill", dump, hours=1e-9)
    assert databases() == []


def test_one_that_is_cut_off_fails_with_a_reason(dump: Path) -> None:
    whole = dump.read_bytes()
    dump.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(CommandError, match=r"cannot be restored\.\npg_restore: "):
        call_command("backup_drill", dump)

    assert databases() == []


def test_what_a_killed_drill_left_is_in_nobodys_way(dump: Path) -> None:
    with connection.cursor() as cursor:
        name = connection.settings_dict["NAME"]
        cursor.execute(f'CREATE DATABASE "{name}_drill"')

    call_command("backup_drill", dump)

    assert databases() == []


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no file"):
        call_command("backup_drill", tmp_path / "nowhere")
