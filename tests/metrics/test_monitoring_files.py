"""The page about figures, the alert rules and the dashboard name what exists."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from django.conf import settings

from provisioner.accounts.models import User
from provisioner.metrics.queries import Figures
from provisioner.workspaces.models import Workspace

FILES = settings.BASE_DIR / "docker/monitoring"
NAME = re.compile(r"\bcloneyard_\w+")


@pytest.fixture
def figures(admin: User) -> dict[str, tuple[str, ...]]:
    """The labels of each figure, by name."""
    families = Figures(by=admin).collect()
    labels = {family.name: getattr(family, "_labelnames", ()) for family in families}
    return {
        "cloneyard_info": ("version",),
        **{k: v for k, v in labels.items() if k != "cloneyard"},
    }


def test_the_page_describes_every_figure(figures: dict[str, tuple[str, ...]]) -> None:
    page = (settings.BASE_DIR / "docs/monitoring.md").read_text()
    rows = re.findall(r"^\| `(cloneyard_\w+)` \| ([\w, ]*)\|", page, re.M)
    told = {name: tuple(re.findall(r"\w+", labels)) for name, labels in rows}
    assert told == figures


def test_alerts_and_dashboard_ask_for_figures_that_exist(
    figures: dict[str, tuple[str, ...]], ready: Workspace
) -> None:
    rules = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    asked = [
        *(rule["expr"] for rule in rules),
        *(each["expr"] for panel in dashboard["panels"] for each in panel["targets"]),
    ]
    assert len(rules) > 10
    assert len(asked) > 25
    for expression in asked:
        assert set(NAME.findall(expression)) <= set(figures), expression


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    rules = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
