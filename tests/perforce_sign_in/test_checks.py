"""Bad configuration stops the process, and check --deploy says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.conf import settings as project
from django.core.checks import run_checks
from pytest_django import Settings

from provisioner.accounts.models import User
from tests.support.perforce_people import PerforcePeople


def said(kind: str = "cloneyard.W005") -> list[str]:
    messages = run_checks(include_deployment_checks=True, databases=["default"])
    return [message.msg for message in messages if message.id == kind]


def test_a_server_that_answers_is_fine(perforce: PerforcePeople, admin: User) -> None:
    assert said() == []
    assert said("cloneyard.W003") == []


def test_somebody_has_to_get_in_without_it(perforce: PerforcePeople) -> None:
    assert len(said("cloneyard.W003")) == 1


@pytest.mark.parametrize(
    ("trouble", "word"),
    [
        ("away", "cannot be reached"),
        ("renamed", "P4_SIGN_IN_SERVER is “people”, and there is no Perforce server"),
        ("not named", "SECRET_HOSTS does not name it"),
        ("password", "is not valid"),
    ],
)
def test_what_is_wrong_is_named(
    trouble: str, word: str, perforce: PerforcePeople, settings: Settings
) -> None:
    if trouble == "away":
        perforce.row.p4port = "127.0.0.1:9"
    elif trouble == "renamed":
        perforce.row.name = "renamed"
    elif trouble == "not named":
        settings.SECRET_HOSTS = ["perforce.example.com"]
    else:
        settings.SITE_SECRET = lambda name, *, key: "changed"
    perforce.row.save()
    [sentence] = said()
    assert word in sentence


def test_clear_text_is_for_loopback_alone(
    perforce: PerforcePeople, settings: Settings
) -> None:
    settings.SECRET_HOSTS = ["perforce.example.com"]
    perforce.row.p4port = "perforce.example.com:1666"
    perforce.row.save()
    assert any("use an ssl: port" in sentence for sentence in said())


def test_without_hosts_that_may_say_who_people_are_no_process_starts() -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=project.BASE_DIR,
        env={**os.environ, "P4_SIGN_IN_SERVER": "main", "SECRET_HOSTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode != 0
    last = ended.stderr.strip().splitlines()[-1]
    assert "P4_SIGN_IN_SERVER needs SECRET_HOSTS with the host of that server" in last
