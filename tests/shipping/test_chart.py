"""The Helm chart: linted and rendered by helm, read by Kubernetes' own schemas."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from tests.support.packaging_tools import tool

pytestmark = pytest.mark.integration

CHART: Path = settings.BASE_DIR / "docker/helm"
RELEASE = "1.31"
SECRET = ("--set", "existingSecret=cloneyard")
EVERYTHING = (
    *("--set", "hostWorker.enabled=true"),
    *("--set", "hostWorker.site=munich,hostWorker.mountRoot=/mnt/cloneyard"),
    *("--set", "hostWorker.rescueRoot=/mnt/rescue"),
    *("--set", "ingress.enabled=true,ingress.tlsSecret=tls"),
    *("--set", "networkPolicy.ingressNamespaceLabels.name=ingress"),
    *("--set", "settings.LOG_LEVEL=DEBUG,settings.WORKER_CONCURRENCY=4"),
)
Manifest = dict[str, Any]


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool("helm"), *arguments, "--kube-version", f"{RELEASE}.0"],
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(*options: str) -> list[Manifest]:
    ran = helm("template", "yard", CHART, *options)
    assert ran.returncode == 0, ran.stderr
    return [one for one in yaml.safe_load_all(ran.stdout) if one]


def named(found: list[Manifest], kind: str, name: str) -> Manifest:
    [one] = [
        one
        for one in found
        if (one["kind"], one["metadata"]["name"]) == (kind, f"yard{name}")
    ]
    return one


def pods_of(found: list[Manifest]) -> dict[str, Manifest]:
    """Return the pods of what starts some, by its name."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in found
        if one["kind"] in ("Deployment", "DaemonSet", "Job")
    }


def test_helm_finds_nothing_wrong() -> None:
    linted = helm("lint", "--strict", CHART, *SECRET, *EVERYTHING)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "WARNING" not in linted.stdout


@pytest.mark.parametrize("options", [SECRET, (*SECRET, *EVERYTHING)])
def test_kubernetes_knows_each_field(options: tuple[str, ...], tmp_path: Path) -> None:
    manifests = rendered(*options)
    file = tmp_path / "rendered.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    checked = subprocess.run(
        [tool("kubernetes-validate"), "--strict", "-k", RELEASE, file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    said = checked.stdout + checked.stderr
    assert said.count(" passed for resource ") == len(manifests)


def test_no_pod_is_root_or_has_a_token_but_host_workers() -> None:
    pods = pods_of(rendered(*SECRET, *EVERYTHING))

    assert set(pods) == {"yard-web", "yard-worker", "yard-migrate", "yard-host-munich"}
    for name, pod in pods.items():
        [container] = pod["containers"]
        security = container["securityContext"]
        assert pod["automountServiceAccountToken"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"]["drop"] == ["ALL"]
        if name != "yard-host-munich":
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert "add" not in security["capabilities"]


def test_pods_have_the_uid_of_the_image() -> None:
    image = (settings.BASE_DIR / "docker/Dockerfile").read_text()
    [uid] = re.findall(r"useradd --system --uid (\d+) ", image)
    pods = pods_of(rendered(*SECRET))

    assert {str(pod["securityContext"]["runAsUser"]) for pod in pods.values()} == {uid}
    assert f"USER {uid}:{uid}" in image


def test_a_host_worker_has_the_capabilities_of_its_unit() -> None:
    host_worker = "cloneyard-host-worker"
    unit = capabilities(f"{host_worker}@.service")
    drop_in = capabilities(f"{host_worker}-commands.conf")
    for options, expected in (
        ((), unit),
        (("--set", "hostWorker.commands=true"), unit | drop_in),
    ):
        pods = pods_of(rendered(*SECRET, *EVERYTHING, *options))
        [container] = pods["yard-host-munich"]["containers"]
        added = container["securityContext"]["capabilities"]["add"]
        assert {f"CAP_{name}" for name in added} == expected
        assert container["args"] == ["worker", "--queues", "host.munich"]


def capabilities(file: str) -> set[str]:
    text = (settings.BASE_DIR / "docker" / file).read_text()
    lines = re.findall(r"^CapabilityBoundingSet=(.*)$", text, re.M)
    return {name for line in lines for name in line.split()}


def test_settings_are_values_and_secrets_a_reference() -> None:
    found = rendered(*SECRET, *EVERYTHING)
    data = named(found, "ConfigMap", "-settings")["data"]

    assert (data["LOG_LEVEL"], data["WORKER_CONCURRENCY"]) == ("DEBUG", "4")
    assert (data["HTTPS"], data["BEHIND_TLS_PROXY"]) == ("true", "true")
    assert not [one for one in found if one["kind"] == "Secret"]
    for pod in pods_of(found).values():
        assert pod["containers"][0]["envFrom"] == [
            {"configMapRef": {"name": "yard-settings"}},
            {"secretRef": {"name": "cloneyard"}},
        ]


def test_a_changed_setting_replaces_the_pods() -> None:
    def checksum(*options: str) -> str:
        web = named(rendered(*SECRET, *options), "Deployment", "-web")
        text: str = web["spec"]["template"]["metadata"]["annotations"][
            "checksum/settings"
        ]
        return text

    assert checksum() == checksum()
    assert checksum() != checksum("--set", "settings.LOG_LEVEL=DEBUG")


def test_migrations_come_before_what_needs_them() -> None:
    found = rendered(*SECRET)
    job = named(found, "Job", "-migrate")["metadata"]["annotations"]
    config = named(found, "ConfigMap", "-settings")["metadata"]["annotations"]

    assert job["helm.sh/hook"] == config["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert int(config["helm.sh/hook-weight"]) < int(job["helm.sh/hook-weight"])


def test_selectors_find_the_pods_that_they_mean() -> None:
    found = rendered(*SECRET, *EVERYTHING)
    labels = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"]
        for one in found
        if one["kind"] in ("Deployment", "DaemonSet", "Job")
    }

    def matched(selector: Manifest) -> set[str]:
        return {name for name, has in labels.items() if selector.items() <= has.items()}

    assert matched(named(found, "Service", "")["spec"]["selector"]) == {"yard-web"}
    for part in ("-web", "-worker"):
        budget = named(found, "PodDisruptionBudget", part)["spec"]["selector"]
        assert matched(budget["matchLabels"]) == {f"yard{part}"}
    policy = named(found, "NetworkPolicy", "-web")["spec"]["podSelector"]
    assert matched(policy["matchLabels"]) == {"yard-web"}


def test_nobody_calls_workers() -> None:
    policy = named(rendered(*SECRET), "NetworkPolicy", "-workers")["spec"]
    assert (policy["policyTypes"], policy.get("ingress")) == (["Ingress"], None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "existingSecret has to name a Secret"),
        ((*SECRET, "--set", "web.replica=3"), "replica"),
        ((*SECRET, "--set", "settings.log=x"), "log"),
        ((*SECRET, "--set", "hostWorker.enabled=true"), "hostWorker.site"),
        (
            (*SECRET, "--set", "hostWorker.enabled=true,hostWorker.site=munich"),
            "hostWorker.mountRoot",
        ),
        ((*SECRET, "--set", "hostWorker.site=Munich"), "site"),
        ((*SECRET, "--set", "web.replicas=-1"), "replicas"),
    ],
)
def test_a_bad_value_is_refused_by_name(options: tuple[str, ...], says: str) -> None:
    refused = helm("template", "yard", CHART, *options)
    assert refused.returncode != 0
    assert says in refused.stderr


def test_its_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (settings.BASE_DIR / "pyproject.toml").read_text()
    assert f'version = "{chart["version"]}"' in project
    assert chart["appVersion"] == chart["version"]
    json.loads((CHART / "values.schema.json").read_text())
