"""The image and compose.yaml, as far as they can be read without a daemon."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

DOCKER: Path = settings.BASE_DIR / "docker"
IMAGE = (DOCKER / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (DOCKER / "compose.yaml").read_text()
)["services"]
OURS = {name: s for name, s in SERVICES.items() if s["image"] == "cloneyard"}


def test_the_image_copies_what_is_there_and_is_not_root() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+) ", IMAGE, re.M)
    assert all((settings.BASE_DIR / path).exists() for path in copied)
    last_user = re.findall(r"^USER (\S+)$", IMAGE, re.M)[-1]
    assert last_user == "cloneyard"


def test_all_services_are_one_image_that_writes_logs_alone() -> None:
    assert set(OURS) == {"web", "worker", "migrate"}
    for service in OURS.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert len(service["tmpfs"]) == 1
        assert service["volumes"] == ["logs:/var/lib/cloneyard/logs"]


def test_what_stays_up_is_watched_and_waits_for_the_migrations() -> None:
    for name in ("web", "worker"):
        assert OURS[name]["healthcheck"]["test"]
        assert OURS[name]["restart"] == "unless-stopped"
        migrated = {"migrate": {"condition": "service_completed_successfully"}}
        assert OURS[name]["depends_on"] == migrated


def test_only_loopback_is_published() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
