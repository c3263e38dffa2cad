"""The page about figures, the alert rules and the dashboard name what exists."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from django.conf import settings

from provisioner.accounts.models import User
from provisioner.metrics.queries import Figures
from provisioner.workspaces.models import Workspace

FILES = settings.BASE_DIR / "docker/monitoring"
NAME = re.compile(r"\bcloneyard[_:][\w:]+")


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


def rules() -> list[dict[str, Any]]:
    files = (FILES / name for name in ("alerts.yml", "objectives.yml"))
    groups = [g for file in files for g in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def dashboard() -> list[dict[str, Any]]:
    panels = json.loads((FILES / "grafana-dashboard.json").read_text())["panels"]
    return [panel for panel in panels if panel["type"] != "row"]


def test_alerts_and_dashboard_ask_for_figures_that_exist(
    figures: dict[str, tuple[str, ...]], ready: Workspace
) -> None:
    asked = [
        *(rule["expr"] for rule in rules()),
        *(each["expr"] for panel in dashboard() for each in panel["targets"]),
    ]
    assert len(asked) > 55
    for expression in asked:
        assert set(NAME.findall(expression)) <= {*figures, *recorded()}, expression


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len(alerts) > 15
    for rule in alerts:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]


def test_the_page_names_every_objective_with_its_figure_and_alerts() -> None:
    page = (settings.BASE_DIR / "docs/monitoring.md").read_text()
    told = page.partition("## Objectives")[2]
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    named = set(re.findall(r"`(Cloneyard\w+)`", told))
    assert len(named) > 5
    assert named <= alerts
    assert {name for name in alerts if "Budget" in name or "Often" in name} <= named
    figures = set(re.findall(r"`(cloneyard:[\w:]+)`", told))
    assert len(figures) == 3
    assert figures <= recorded()


def test_panels_of_the_dashboard_lie_beside_each_other() -> None:
    document = json.loads((FILES / "grafana-dashboard.json").read_text())
    cells = [
        (x, y)
        for panel in document["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    ids = [panel["id"] for panel in document["panels"]]
    assert len(ids) == len(set(ids))
    for panel in dashboard():
        assert panel["type"] in {"stat", "timeseries"}
        for each in (panel, *panel["targets"]):
            assert each["datasource"]["uid"] == "${datasource}"
