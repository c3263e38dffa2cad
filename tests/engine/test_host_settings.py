"""What settings name has to be on the hosts of those processes that need it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import Tags, run_checks
from django.db import connection
from pytest_django import Settings

from provisioner.engine.host_settings import why_unfit
from provisioner.engine.worker_pools import Pool, pools_of


def pools(*queues: str, commands: int = 1) -> list[Pool]:
    return pools_of(queues, slots=1, command_slots=commands, bisection_slots=commands)


HOST = pools("host.munich")
WITHOUT_COMMANDS = pools("host.munich", commands=0)
ELSEWHERE = pools("storage", "perforce")


def test_usual_settings_are_fit_everywhere() -> None:
    assert [why_unfit(each) for each in (HOST, WITHOUT_COMMANDS, ELSEWHERE)] == [""] * 3


def test_a_cgroup_has_to_be_where_commands_run(
    settings: Settings, tmp_path: Path
) -> None:
    settings.SANDBOX_CGROUP = str(tmp_path)
    assert f"SANDBOX_CGROUP {tmp_path} is no directory of cgroup" in why_unfit(HOST)
    assert why_unfit(WITHOUT_COMMANDS) == why_unfit(ELSEWHERE) == ""


def test_a_mount_command_has_to_be_where_volumes_are_mounted(
    settings: Settings, tmp_path: Path
) -> None:
    settings.MOUNT_COMMAND = [str(tmp_path / "mount-it"), "--fast"]
    assert f"MOUNT_COMMAND names {tmp_path}/mount-it, which is no" in why_unfit(HOST)
    assert why_unfit(ELSEWHERE) == ""

    (tmp_path / "mount-it").touch(mode=0o755)
    assert why_unfit(HOST) == ""


def test_logs_have_to_be_kept_somewhere(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.LOG_DIR = tmp_path / "file" / "logs"
    assert f"{tmp_path}/file is no directory" in why_unfit(ELSEWHERE)
    [found] = run_checks(tags=["logs"], include_deployment_checks=True)
    assert (found.id, "VAR_DIR above it" in found.msg) == ("cloneyard.E002", True)

    settings.LOG_DIR = tmp_path / "not" / "there" / "yet"
    assert why_unfit(ELSEWHERE) == ""
    assert run_checks(tags=["logs"], include_deployment_checks=True) == []
    assert not (tmp_path / "not").exists(), "a check makes nothing"


@pytest.mark.django_db
@pytest.mark.parametrize(("beyond", "is_said"), [(0, False), (1, True)])
def test_a_pool_has_to_fit_the_database(
    beyond: int, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int"
        )
        [room] = cursor.fetchone()
    pool = {"max_size": room + beyond}
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", pool)

    found = run_checks(
        tags=[Tags.database], include_deployment_checks=True, databases=["default"]
    )
    said = [each.msg for each in found if each.id == "cloneyard.E003"]
    assert bool(said) == is_said
    assert all(f"DATABASE_POOL is {room + 1}" in sentence for sentence in said)
