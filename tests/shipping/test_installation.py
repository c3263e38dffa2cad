"""docs/install.md, from an empty host to a first workspace: each command is run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.documents import blocks_of, reading
from tests.support.hosts import Host, database_server, empty_host

pytestmark = pytest.mark.integration

PAGE: Path = settings.BASE_DIR / "docs/install.md"
BACKUP: Path = settings.BASE_DIR / "docs/backup.md"
WITHIN_SECONDS = 240
PASSWORD = "a-password-of-a-test"
# What is answered at a prompt is given otherwise.
ADMINISTRATOR = (
    f"DJANGO_SUPERUSER_PASSWORD={PASSWORD} cloneyard-server createsuperuser --no-input "
    "--username admin --email admin@example.com"
)
SIGN_IN = (
    f"curl --fail --silent --user admin:{PASSWORD} --request POST "
    "http://127.0.0.1:8000/api/v1/tokens "
    "| python3 -c 'import json, sys; print(json.load(sys.stdin)[\"token\"])' "
    "| cloneyard login --token"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` makes, without the bill of materials."""
    into = tmp_path_factory.mktemp("dist")
    ran = subprocess.run(
        [".ci/dist", settings.BASE_DIR / ".venv/bin", into],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return into


@pytest.fixture
def host(built: Path) -> Iterator[Host]:
    with empty_host() as host:
        subprocess.run(["cp", "-r", built, host.home / "dist"], check=True)
        yield host


@contextmanager
def showing_logs(host: Host) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        error.add_note(host.logs())
        raise


@pytest.mark.timeout(900)
def test_the_page_leads_from_an_empty_host_to_a_workspace(host: Host) -> None:
    with showing_logs(host), reading(host.home, host.environment) as reader:

        def read(section: str, **instead: str) -> list[str]:
            return reader.run(
                PAGE,
                blocks_of(PAGE, "sh", section=section),
                instead={key.replace("_", " "): text for key, text in instead.items()},
                seconds=WITHIN_SECONDS,
            )

        reader.within = host.within(has_index=True)
        [said] = read("The program")
        assert "Made /etc/cloneyard/environment with a SECRET_KEY of its own." in said
        assert "postgresql" in (host.directory / "apt.log").read_text()
        kept = host.path("/etc/cloneyard/environment").stat()
        assert (kept.st_mode & 0o777, kept.st_uid) == (0o600, 0)

        reader.within = host.within()
        with database_server(host):
            settled = reader.run(
                PAGE,
                blocks_of(PAGE, "sh", section="Database and settings"),
                instead={"cloneyard-server createsuperuser": ADMINISTRATOR},
                seconds=WITHIN_SECONDS,
            )
            assert "no issues" in settled[0]
            [started] = read("Start")
            assert '{"alive": true}' in started
            [worked] = reader.run(
                PAGE,
                blocks_of(PAGE, "sh", section="The first workspace"),
                instead={"cloneyard login": SIGN_IN},
                seconds=WITHIN_SECONDS,
            )
            assert "/srv/cloneyard-lab/" in worked
            assert "__pycache__" in worked.split(), "it is built"
            backup, drill = reader.run(BACKUP, blocks_of(BACKUP, "sh"))
            upgraded, removed = read("Upgrades")
            assert "Restored and dropped again" in drill, backup + drill
            assert "Nothing to do" in upgraded
            assert "are kept" in removed
        assert host.path("/etc/cloneyard/environment").exists()
        assert host.path("/var/lib/cloneyard").is_dir()
        assert not host.path("/opt/cloneyard").exists()
