"""The bill of materials: each locked package once, with its hashes and a licence."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.support.packaging_tools import tool

pytestmark = pytest.mark.integration

LOCK = (settings.BASE_DIR / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def bom(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    tool("cyclonedx-py")
    into = tmp_path_factory.mktemp("bom")
    ran = subprocess.run(
        [".ci/sbom", settings.BASE_DIR / ".venv/bin", into],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    document: dict[str, Any] = json.loads((into / "cloneyard.cdx.json").read_text())
    return document


def hashes_of(component: dict[str, Any]) -> set[str]:
    return {
        one["content"]
        for reference in component["externalReferences"]
        for one in reference.get("hashes", ())
    }


def test_each_locked_package_is_in_it_once_with_its_hashes(
    bom: dict[str, Any],
) -> None:
    locked = {
        f"pkg:pypi/{name}@{version}": set(re.findall(r"sha256:([0-9a-f]{64})", hashes))
        for name, version, hashes in re.findall(
            r"^([^#\s]+)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", LOCK, re.M
        )
    }
    found = {one["purl"]: hashes_of(one) for one in bom["components"]}

    assert len(locked) == LOCK.count("==")
    assert found == locked
    assert set(Counter(one["bom-ref"] for one in bom["components"]).values()) == {1}


def test_each_has_a_licence(bom: dict[str, Any]) -> None:
    assert [one["name"] for one in bom["components"] if not one.get("licenses")] == []


def test_it_says_what_it_is_of_and_what_that_needs(bom: dict[str, Any]) -> None:
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    root = bom["metadata"]["component"]
    assert (root["name"], root["type"]) == ("cloneyard", "application")
    needs = {one["ref"]: one["dependsOn"] for one in bom["dependencies"]}
    assert any(ref.startswith("pkg:pypi/django@") for ref in needs[root["bom-ref"]])
    known = {one["bom-ref"] for one in bom["components"]}
    assert {ref for refs in needs.values() for ref in refs} <= known


def test_the_image_has_it() -> None:
    image = (settings.BASE_DIR / "docker/Dockerfile").read_text()
    assert "COPY dist/cloneyard.cdx.json " in image


def test_a_licence_that_is_said_in_words_is_still_true() -> None:
    """What docker/sbom.py says of a package has to be what its metadata says."""
    module = (settings.BASE_DIR / "docker/sbom.py").read_text()
    for name, licence in re.findall(r'^    "([\w.-]+)": "([^"]+)",', module, re.M):
        [metadata] = Path(settings.BASE_DIR, ".venv/lib").glob(
            f"python3*/site-packages/{name}-*.dist-info/METADATA"
        )
        [said] = re.findall(r"^License: (.*)$", metadata.read_text(), re.M)
        words = Counter(said.removesuffix(" License").replace("-", " ").split())
        assert words == Counter(licence.replace("-", " ").split())
