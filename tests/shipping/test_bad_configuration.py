"""A bad setting stops each process with one sentence, and an exit code that says so."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from provisioner.server import AWAY, BADLY_CONFIGURED

pytestmark = pytest.mark.integration

ENDS_WITHIN_SECONDS = 120
LONG_KEY = "only-for-tests-" * 4
# A setting, the command, what its sentence says: each command meets each kind.
MALFORMED = [
    ("DATABASE_URL=s3cret", "migrate", "DATABASE_URL"),
    ("DATABASE_URL=mysql://u:s3cret@h/d", "worker", "DATABASE_URL"),
    ("DATABASE_URL_FILE=/dev/null/url", "web", "DATABASE_URL_FILE: /dev/null/url"),
    ("SECRET_KEY_FILE=/dev/null/key", "check", "SECRET_KEY_FILE: /dev/null/key"),
    ("ONTAP_PASSWORD_FILE=/", "worker", "ONTAP_PASSWORD_FILE: / cannot be read"),
    ("SECRET_KEY=s3cret", "web", "SECRET_KEY has 6 characters"),
    ("DEBUG=maybe", "check", "true or false"),
    ("WORKER_CONCURRENCY=many", "worker", "a whole number"),
    ("WORKER_CONCURRENCY=0", "worker", "at least 1"),
    ("WORKER_COMMANDS=-1", "migrate", "at least 0"),
    ("WORKER_STALLED_SECONDS=1", "worker", "more than WORKER_HEARTBEAT_SECONDS"),
    ("DISPLAY_TIME_ZONE=Europe/Atlantis", "web", "DISPLAY_TIME_ZONE"),
    ("TRUSTED_BROKERS=10.0.0.0/99", "web", "10.0.0.0/99"),
    ("WEBHOOK_ALLOWED_NETWORKS=10.0.0.0.0", "worker", "10.0.0.0.0"),
    ("LOG_LEVEL=LOUD", "web", "LOG_LEVEL"),
    ("EMAIL_URL=http://u:s3cret@h", "check", "EMAIL_URL"),
    ("PUBLIC_URL=cloneyard", "web", "PUBLIC_URL"),
    ("OIDC_ISSUER=http://id.example.com", "web", "OIDC_ISSUER"),
    ("OIDC_ABSENT_DAYS=7", "web", "0 or 15 and more"),
    ("LDAP_URLS=ldap://ldap.example.com LDAP_KIND=x", "check", "LDAP_KIND"),
    ("LDAP_URLS=ldaps://[", "check", "LDAP_URLS"),
    ("OIDC_ISSUER=https://[", "migrate", "OIDC_ISSUER"),
    ("API_TOKEN_DAYS=999999999", "web", "API_TOKEN_DAYS has to be at most 36,500"),
    ("WORKER_STALLED_SECONDS=9999999", "worker", "at most 86,400"),
    ("MOUNT_COMMAND='", "worker", "MOUNT_COMMAND"),
    ("ALLOWED_HOSTS=https://cloneyard", "web", "ALLOWED_HOSTS"),
    ("SECRET_HOSTS=ontap:443", "worker", "SECRET_HOSTS"),
]
# What a well-formed setting says may be impossible all the same.
IMPOSSIBLE = [
    ("DATABASE_URL=postgres://u:s3cret@127.0.0.1:1/d", "migrate", "port 1 failed"),
    ("DATABASE_URL=postgres://u:s3cret@no.invalid/d", "migrate", "host 'no.invalid'"),
    ("DATABASE_URL=postgres://u:s3cret@192.0.2.1/d", "migrate", "cannot be used"),
    ("WEB_BIND=127.0.0.1:http", "web", "WEB_BIND has to be HOST:PORT"),
    ("WEB_BIND=127.0.0.1:99999", "web", "no such port"),
    ("HEALTH_BIND=192.0.2.1:8001", "web", "HEALTH_BIND 192.0.2.1:8001"),
    ("WEB_BIND=127.0.0.1:1 HEALTH_BIND=127.0.0.1:1", "web", "another address than"),
    ("WORKER_ALIVE_FILE=/dev/null/alive", "worker", "WORKER_ALIVE_FILE"),
    ("LOG_DIR=/dev/null/logs", "worker", "LOG_DIR /dev/null/logs cannot be made"),
    ("SANDBOX_CGROUP=/nowhere", "worker", "SANDBOX_CGROUP /nowhere is no directory"),
    ("MOUNT_COMMAND=/nowhere/mount", "worker", "MOUNT_COMMAND names /nowhere/mount"),
    ("X=", "worker --queues storage,perfroce", "no queue perfroce"),
    ("X=", "worker --queues host.", "no queue host."),
    ("X=", "start", "Unknown command: 'start'"),
]


def ended(assignments: str, command: str, *, var: Path) -> tuple[int, str]:
    """Run a command of an installation with these settings; return how it ends."""
    given = dict(text.split("=", 1) for text in assignments.split())
    variables = {"PATH": os.environ["PATH"], "VAR_DIR": str(var), "WEB_BIND": ""}
    if "SECRET_KEY_FILE" not in given:
        variables["SECRET_KEY"] = LONG_KEY
    ran = subprocess.run(
        [sys.executable, "manage.py", *command.split()],
        cwd=settings.BASE_DIR,
        env={**variables, **given},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_SECONDS,
        check=False,
    )
    assert ran.stdout == ""
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(("assignments", "command", "says"), MALFORMED)
def test_a_malformed_setting_is_one_sentence(
    assignments: str, command: str, says: str, tmp_path: Path
) -> None:
    code, said = ended(assignments, command, var=tmp_path)

    assert (code, said.count("\n")) == (BADLY_CONFIGURED, 1), said
    assert said.startswith("Bad configuration: ")
    assert says in said
    assert "s3cret" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("assignments", "command", "says"), IMPOSSIBLE)
def test_what_is_impossible_is_one_sentence(
    assignments: str, command: str, says: str, tmp_path: Path
) -> None:
    code, said = ended(assignments, command, var=tmp_path)

    assert code == AWAY, said
    assert says in said
    assert len(said.splitlines()) <= 2, said  # Django adds where help is
    assert "Traceback" not in said
    assert "s3cret" not in said


def test_an_address_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        code, said = ended(f"WEB_BIND={address}", "web", var=tmp_path)

    sentence = f"Nothing can listen at WEB_BIND {address}: Address already in use."
    assert (code, said) == (AWAY, f"CommandError: {sentence}\n")


@pytest.mark.parametrize("command", ["web", "worker", "migrate"])
def test_a_directory_that_cannot_be_written_is_one_sentence(
    command: str, tmp_path: Path
) -> None:
    """Whether it is for the key, the static files or the database."""
    file = tmp_path / "file"
    file.touch()
    code, said = ended("X=", command, var=file / "var")

    assert code in (AWAY, BADLY_CONFIGURED), said
    [sentence] = said.splitlines()
    assert "VAR_DIR" in sentence
    assert str(file) in sentence


def test_a_generated_key_needs_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    code, said = ended("SECRET_KEY=", "check", var=file / "var")

    assert (code, said.count("\n")) == (BADLY_CONFIGURED, 1), said
    assert "No SECRET_KEY is set, and none can be kept in VAR_DIR" in said


def test_a_worker_without_tables_says_what_is_missing(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code, said = ended("X=", "worker", var=tmp_path)

    assert code == AWAY
    assert said.splitlines()[-1] == (
        "CommandError: The database has no tables yet: run `cloneyard-server migrate` "
        "first."
    )
