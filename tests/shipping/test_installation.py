"""docs/install.md, from an empty host to a first workspace, and to the next release."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from provisioner import __version__
from tests.support.documents import ON_A_HOST_OF_ITS_OWN, Reader, blocks_of, reading
from tests.support.hosts import Host, database_server, empty_host, keep_packages

pytestmark = pytest.mark.integration

PAGE: Path = settings.BASE_DIR / "docs/install.md"
BACKUP: Path = settings.BASE_DIR / "docs/backup.md"
MONITORING: Path = settings.BASE_DIR / "docs/monitoring.md"
OF_WEB_AND_WORKERS = {
    ("request_finished", None),
    ("workspace_state_changed", "ready"),
}
WITHIN_SECONDS = 240
NEWER = "9.9.9"
MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("engine", "0001_initial")]
    operations = [migrations.RunSQL("CREATE TABLE of_the_next_release (n integer)")]
"""
ASK_FOR_RELEASES = """
from provisioner.engine.workers import alive_workers
print(*(worker.release for worker in alive_workers()))
"""
ASK_FOR_WORKSPACES = """
from provisioner.workspaces.models import Workspace
print(*Workspace.objects.values_list("template__name", "state"))
"""
ASK_FOR_THE_REQUEST = """
from provisioner.engine.models import Operation
print(Operation.objects.get(kind="provision").request_id)
"""
PROGRAM = "/opt/cloneyard/bin"
ELSEWHERE = "/srv/programs/cloneyard"
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
    return dist_of(settings.BASE_DIR, into=tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a next release, which has a migration."""
    source = tmp_path_factory.mktemp("newer") / "source"
    left = shutil.ignore_patterns(
        "var", "tests", ".git", ".venv", "*_cache", "__pycache__"
    )
    shutil.copytree(settings.BASE_DIR, source, ignore=left)
    for name in ("pyproject.toml", "provisioner/__init__.py"):
        text = (source / name).read_text()
        newer = text.replace(f'version = "{__version__}"', f'version = "{NEWER}"')
        newer = newer.replace(
            f'__version__ = "{__version__}"', f'__version__ = "{NEWER}"'
        )
        assert newer != text, name
        (source / name).write_text(newer)
    migrations = source / "provisioner/engine/migrations"
    (migrations / "0002_newer.py").write_text(MIGRATION)
    return dist_of(source, into=tmp_path_factory.mktemp("newer-dist"))


def dist_of(source: Path, *, into: Path) -> Path:
    ran = subprocess.run(
        [source / ".ci/dist", settings.BASE_DIR / ".venv/bin", into],
        cwd=source,
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


def put(dist: Path, host: Host) -> None:
    """Copy the files of a release to the host, in place of those of another."""
    shutil.rmtree(host.home / "dist")
    shutil.copytree(dist, host.home / "dist")


def answer(host: Host, question: str) -> str:
    ran = host.run("cloneyard-server", "shell", "--verbosity", "0", "-c", question)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def events_of_one_id(host: Host, reader: Reader) -> set[tuple[str, str | None]]:
    """Return what the page's search for one id finds, of the request that made it."""
    identity = answer(host, ASK_FOR_THE_REQUEST)
    [found] = reader.run(
        MONITORING,
        blocks_of(MONITORING, "sh"),
        instead={
            # systemctl of an empty host keeps what units wrote.
            "journalctl -o cat -u cloneyard-web -u 'cloneyard-*worker*'": "cat "
            f"{host.directory}/units/cloneyard-web*.log "
            f"{host.directory}/units/cloneyard-*worker*.log",
            "7c9e6679-7425-40de-944b-e07fc1f90ae7": identity,
        },
    )
    lines = [json.loads(line) for line in found.splitlines()]
    return {(line["event"], line.get("state")) for line in lines}


def wait_for_releases(host: Host, expected: list[str]) -> None:
    ends = time.monotonic() + WITHIN_SECONDS
    while (found := answer(host, ASK_FOR_RELEASES).split()) != expected:
        assert time.monotonic() < ends, found
        time.sleep(1.0)


def fail_to_upgrade(host: Host, newer: Path) -> None:
    """Upgrade with a wheel that was cut short: the release before works on."""
    put(newer, host)
    [wheel] = (host.home / "dist").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes()[:-100])
    led_to = host.path(PROGRAM).readlink()

    failed = host.run("sh", "dist/install.sh", "--role", "web")

    assert failed.returncode == 1
    assert "the wheel could not be installed; nothing is changed" in failed.stderr
    assert host.path(PROGRAM).readlink() == led_to
    units = ("cloneyard-web", "cloneyard-worker", "cloneyard-host-worker@demo")
    assert host.run("systemctl", "restart", *units).returncode == 0
    wait_for_releases(host, [__version__] * 2)


def install_elsewhere(host: Host) -> None:
    def install(*words: str) -> str:
        ran = host.run("sh", "dist/install.sh", *words, "--prefix", ELSEWHERE)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert f"in {ELSEWHERE}." in install("--role", "web")
    unit = host.path("/etc/systemd/system/cloneyard-web.service").read_text()
    assert f"ExecStart={ELSEWHERE}/bin/cloneyard-server web\n" in unit
    assert answer(host, "import sys; print(sys.prefix)").startswith(ELSEWHERE)
    assert not host.path("/opt/cloneyard").exists()
    install("--uninstall")
    assert not host.path(ELSEWHERE).exists()


@pytest.mark.timeout(1500)
def test_the_page_leads_from_an_empty_host_to_a_workspace(
    host: Host, built: Path, newer: Path
) -> None:
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
        assert "no issues" in read("Without install.sh")[0]
        keep_packages(host, lock="dist/requirements.lock")

        reader.within, reader.environment = host.within(), host.environment
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
            assert events_of_one_id(host, reader) >= OF_WEB_AND_WORKERS
            backup, drill = reader.run(BACKUP, blocks_of(BACKUP, "sh"))
            assert "Restored and dropped again" in drill, backup + drill
            workspaces = answer(host, ASK_FOR_WORKSPACES)
            assert workspaces == "('django-db', 'ready')"

            fail_to_upgrade(host, newer)
            put(newer, host)
            upgrade, uninstall = blocks_of(PAGE, "sh", section="Upgrades")
            [upgraded] = reader.run(PAGE, [upgrade], seconds=WITHIN_SECONDS)
            assert f"Installed cloneyard-{NEWER}" in upgraded
            assert "Applying engine.0002_newer... OK" in upgraded
            wait_for_releases(host, [NEWER] * 2)
            assert answer(host, ASK_FOR_WORKSPACES) == workspaces
            again = host.run("sh", "dist/install.sh", "--role", "web")
            assert "Nothing to do" in again.stdout
            for dist in (built, newer):  # back and forth
                put(dist, host)
                back = host.run("sh", "dist/install.sh", "--role", "web")
                assert "Installed cloneyard-" in back.stdout, back.stderr
                assert len([*host.path("/opt/cloneyard/releases").iterdir()]) == 2
            [removed] = reader.run(PAGE, [uninstall], seconds=WITHIN_SECONDS)
            assert "are kept" in removed
            install_elsewhere(host)
        assert reader.ran == {
            (Path(page).name, block.line)
            for page, sections in ON_A_HOST_OF_ITS_OWN.items()
            for section in sections
            for block in blocks_of(settings.BASE_DIR / page, "sh", section=section)
        }
        assert host.path("/etc/cloneyard/environment").exists()
        assert host.path("/var/lib/cloneyard").is_dir()
        assert not host.path("/opt/cloneyard").exists()
