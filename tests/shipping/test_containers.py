"""The image and compose.yaml, read; test_containers_up.py runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from tests.support.packaging_tools import tool

DOCKER: Path = settings.BASE_DIR / "docker"
IMAGE = (DOCKER / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (DOCKER / "compose.yaml").read_text()
)["services"]
OURS = {name: s for name, s in SERVICES.items() if s["image"] == "cloneyard"}
TEMPORARY = "/tmp"  # noqa: S108 - of a container
FOR_A_TRIAL = {"lab", "lab-host-worker"}
STAYS_UP = {"web", "worker", *FOR_A_TRIAL}
# What is there once it is built, or made before.
MADE = {"dist/cloneyard.cdx.json"}


def test_the_image_copies_what_is_there_and_is_not_root() -> None:
    copied = set(re.findall(r"^COPY (?!--from)(\S+) ", IMAGE, re.M)) - MADE
    assert all((settings.BASE_DIR / path).exists() for path in copied)
    last_user = re.findall(r"^USER (\S+)$", IMAGE, re.M)[-1]
    assert last_user == "999:999", "Kubernetes knows no names"


def test_the_image_has_a_health_check_and_begins_with_our_command() -> None:
    assert 'ENTRYPOINT ["cloneyard-server"]' in IMAGE
    assert 'CMD ["web", "--collected"]' in IMAGE
    [check] = re.findall(r"^HEALTHCHECK .*\\\n    CMD (\[.*\])$", IMAGE, re.M)
    of_web = OURS["web"]["healthcheck"]
    assert json.loads(check) == of_web["test"][1:]
    assert f"--start-period={of_web['start_period']} " in IMAGE  # else there is none


@pytest.mark.integration
def test_hadolint_finds_nothing_wrong() -> None:
    linted = subprocess.run(
        [tool("hadolint"), "--failure-threshold", "info", DOCKER / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (linted.returncode, linted.stdout) == (0, "")


def test_all_services_are_one_image_that_writes_logs_and_the_lab_alone() -> None:
    assert set(OURS) == {"web", "worker", "migrate", *FOR_A_TRIAL}
    for service in OURS.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"] == [TEMPORARY]
        assert service["volumes"] == [
            "logs:/var/lib/cloneyard/logs",
            "lab:/var/lib/cloneyard/lab",
        ]


def test_what_is_written_belongs_to_the_user_of_the_image() -> None:
    """A new volume gets owner and mode of the directory that it covers."""
    [made] = re.findall(r"install -d -o cloneyard -m 0750 (.*)$", IMAGE, re.M)
    assert made.split() == ["/var/lib/cloneyard/logs", "/var/lib/cloneyard/lab"]


def test_what_stays_up_is_watched_and_waits_for_the_migrations() -> None:
    for name in STAYS_UP:
        assert OURS[name]["healthcheck"]["test"]
        assert OURS[name]["restart"] == "unless-stopped"
        migrated = {"migrate": {"condition": "service_completed_successfully"}}
        assert OURS[name]["depends_on"] == migrated


def test_the_lab_is_for_who_asks_for_it() -> None:
    profiles = {name: service.get("profiles") for name, service in SERVICES.items()}
    assert {name for name, found in profiles.items() if found} == FOR_A_TRIAL
    assert all(profiles[name] == ["lab"] for name in FOR_A_TRIAL)


def test_the_database_is_a_release_that_we_test_with() -> None:
    assert SERVICES["database"]["image"] == "postgres:18"


def test_the_database_has_time_to_be_made_before_anything_gives_up() -> None:
    """The image makes it by a server that has only a socket, and ends."""
    check = SERVICES["database"]["healthcheck"]
    assert check["test"][-2:] == ["-h", "127.0.0.1"]
    assert check["start_period"] == "60s"


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_command_is_one_that_the_image_has(name: str) -> None:
    """Each is asked for its help, which has to name all its options."""
    command = OURS[name].get("command", ["web", "--collected"])
    helped = subprocess.run(
        [sys.executable, "manage.py", command[0], "--help"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert helped.returncode == 0, helped.stderr
    options = [word for word in command if word.startswith("--")]
    assert all(option in helped.stdout for option in options)


def test_a_worker_is_healthy_while_it_was_heard_lately(tmp_path: Path) -> None:
    heard = tmp_path / "worker-heard"
    [kind, line] = OURS["worker"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    asked = line.replace("$$", "$").replace(f"{TEMPORARY}/worker-heard", str(heard))

    def is_healthy() -> bool:
        return subprocess.run(["sh", "-c", asked], check=False).returncode == 0

    assert not is_healthy()
    heard.touch()
    assert is_healthy()
    subprocess.run(["touch", "-d", "5 minutes ago", heard], check=True)
    assert not is_healthy()


def test_only_loopback_is_published() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
