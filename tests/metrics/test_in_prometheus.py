"""Alert rules, objectives and dashboard in a real Prometheus, which scrapes a server.

Grafana is not among the packages that this project may install: its dashboard is read
as JSON, and each of its expressions is asked of Prometheus.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.demo.processes import Child
from provisioner.workspaces.models import Workspace
from tests.metrics.alert_cases import CASES, Case
from tests.support.ports import free_ports

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not (shutil.which("promtool") and shutil.which("prometheus")),
        reason="needs Prometheus (.ci/system-packages)",
    ),
]

FILES = settings.BASE_DIR / "docker/monitoring"
RULES = ("alerts.yml", "objectives.yml")
WITHIN_SECONDS = 60.0


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *words], capture_output=True, text=True, timeout=120
    )


def alerts() -> dict[str, dict[str, Any]]:
    groups = [
        g
        for name in RULES
        for g in yaml.safe_load((FILES / name).read_text())["groups"]
    ]
    rules = [rule for group in groups for rule in group["rules"]]
    return {rule["alert"]: rule for rule in rules if "alert" in rule}


def expressions() -> list[str]:
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    return [each["expr"] for panel in panels for each in panel["targets"]]


def test_promtool_accepts_rules_and_configuration(tmp_path: Path) -> None:
    for name in (*RULES, "prometheus.yml"):
        shutil.copy(FILES / name, tmp_path)
    token = tmp_path / "token"
    token.write_text("x")
    configuration = tmp_path / "prometheus.yml"
    text = configuration.read_text()
    configuration.write_text(
        text.replace("/etc/prometheus/cloneyard.token", str(token))
    )

    for checked in (
        promtool("check", "rules", *(str(FILES / name) for name in RULES)),
        promtool("check", "config", str(configuration)),
    ):
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("every", ["1m", "10m"])
def test_each_alert_fires_when_it_has_to_and_not_before(
    every: str, tmp_path: Path
) -> None:
    told = promtool("test", "rules", str(_written(CASES, every, tmp_path)))

    assert told.returncode == 0, told.stdout + told.stderr


def test_each_alert_has_its_case() -> None:
    assert {case.alert for case in CASES} == set(alerts())


def test_a_case_that_is_wrong_is_found(tmp_path: Path) -> None:
    case = Case("CloneyardIsDown", ('up{job="cloneyard"}',), bad="1", good="0", after=5)

    told = promtool("test", "rules", str(_written([case], "1m", tmp_path)))

    assert told.returncode == 1
    assert "CloneyardIsDown" in told.stderr + told.stdout


def _written(cases: Iterable[Case], every: str, directory: Path) -> Path:
    """Write promtool's tests of those cases that are evaluated this often."""
    tests = [part for c in cases if c.every == every for part in _tests_of(c)]
    assert tests
    file = directory / "cases.yml"
    document = {
        "rule_files": [str(FILES / name) for name in RULES],
        "evaluation_interval": every,
        "tests": tests,
    }
    file.write_text(json.dumps(document))
    return file


def _tests_of(case: Case) -> Iterator[dict[str, Any]]:
    """Yield a test in which the alert fires, and one in which it does not."""
    firing = f'count(ALERTS{{alertname="{case.alert}", alertstate="firing"}} == 1)'
    for values, samples in ((case.bad, [{"value": 1}]), (case.good, [])):
        series = [*((name, values) for name in case.series), *case.beside]
        yield {
            "name": f"{case.alert} {values}",
            "interval": case.every,
            "input_series": [
                {"series": name, "values": f"{value}x{case.after}"}
                for name, value in series
            ],
            "promql_expr_test": [
                {
                    "expr": firing,
                    "eval_time": f"{case.after}m",
                    "exp_samples": samples,
                }
            ],
        }


@dataclass(frozen=True)
class Prometheus:
    url: str

    def get(self, path: str, **query: str) -> Any:
        address = f"{self.url}/api/v1/{path}?{urlencode(query)}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310
            told = json.load(answer)
        assert told["status"] == "success", told
        return told["data"]

    def rules(self) -> list[dict[str, Any]]:
        groups = self.get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def has(self, expression: str) -> bool:
        return bool(self.get("query", query=expression)["result"])


@pytest.fixture
def prometheus(
    live_server: LiveServer, admin: User, ready: Workspace, tmp_path: Path
) -> Iterator[Prometheus]:
    """Start one as docs/monitoring.md says, but for address, scheme and pace."""
    _, secret = token_create(by=admin)
    token = tmp_path / "cloneyard.token"
    token.write_text(secret)
    token.chmod(0o600)
    for name in RULES:
        text = (FILES / name).read_text()
        (tmp_path / name).write_text(text.replace("interval: 5m", "interval: 1s"))
    configuration = yaml.safe_load((FILES / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    [job] = configuration["scrape_configs"]
    job["scheme"] = "http"
    job["authorization"] = {"credentials_file": str(token)}
    job["static_configs"] = [{"targets": [live_server.url.removeprefix("http://")]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    [port] = free_ports(1)
    child = Child(
        "prometheus",
        [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        log_dir=tmp_path,
    )
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        child.stop()


def wait_for(is_so: Callable[[], Any]) -> None:
    ends = time.monotonic() + WITHIN_SECONDS
    while True:
        try:
            if is_so():
                return
        except OSError:  # it starts
            pass
        assert time.monotonic() < ends
        time.sleep(0.2)


@pytest.mark.django_db(transaction=True)
def test_it_scrapes_a_server_evaluates_all_rules_and_answers_the_dashboard(
    prometheus: Prometheus,
) -> None:
    wait_for(lambda: prometheus.has('cloneyard_workspaces{state="ready"} == 1'))
    wait_for(lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()))
    wait_for(lambda: prometheus.has("cloneyard:oldest_step:too_old_ratio28d"))

    [target] = prometheus.get("targets")["activeTargets"]
    assert target["health"] == "up", target
    rules = prometheus.rules()
    assert {rule["name"] for rule in rules if rule["type"] == "alerting"} == set(
        alerts()
    )
    assert len(rules) > len(alerts())
    for rule in rules:
        assert rule["health"] == "ok", rule
    firing = [rule["name"] for rule in rules if rule.get("state") == "firing"]
    assert firing == []
    for expression in expressions():
        prometheus.get("query", query=expression)
    answered = [each for each in expressions() if prometheus.has(each)]
    # What has no sample in a new installation: what waits, is full, or was late.
    assert len(answered) > len(expressions()) / 2, set(expressions()) - set(answered)
