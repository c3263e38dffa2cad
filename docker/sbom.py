"""The bill of materials: what requirements.lock has, with hashes and licences.

    sbom.py LOCKED INSTALLED REQUIREMENTS >cloneyard.cdx.json

cyclonedx-py reads hashes from requirements.lock (LOCKED) and licences from what is
installed (INSTALLED). This puts both together, one component a package; Cloneyard
itself needs what REQUIREMENTS names above its part for development.

Source: https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

Bom = dict[str, Any]
# What cyclonedx-py does not read as a licence, since it is said in other words.
SAID_OTHERWISE = {
    "protobuf": "BSD-3-Clause",
    "uritemplate": "BSD-3-Clause OR Apache-2.0",
}


def merged(locked: Bom, installed: Bom, *, named: set[str]) -> Bom:
    """Return one document: the packages of `locked`, as `installed` describes them."""
    described = {_key(one): one for one in installed["components"]}
    components, refs = [], {}
    for package in locked["components"]:
        name, version = key = _key(package)
        if key not in described:
            sys.exit(f"{name} {version} of requirements.lock is not installed here.")
        refs[described[key]["bom-ref"]] = package["purl"]
        components.append(_merged(package, described[key]))
    root = installed["metadata"]["component"]
    directly = [one["purl"] for one in locked["components"] if _key(one)[0] in named]
    needed = _dependencies(installed["dependencies"], refs)
    return {
        **installed,
        "metadata": {**installed["metadata"], "component": root},
        "components": sorted(components, key=lambda one: str(one["bom-ref"])),
        "dependencies": [
            *needed,
            {"ref": root["bom-ref"], "dependsOn": sorted(directly)},
        ],
    }


def _merged(package: Bom, described: Bom) -> Bom:
    files = [
        reference
        for reference in package["externalReferences"]
        if reference["type"] == "distribution"
    ]
    said = SAID_OTHERWISE.get(described["name"])
    licences = [{"expression": said}] if said else described.get("licenses", [])
    return {
        **described,
        "licenses": licences,
        "bom-ref": package["purl"],
        "purl": package["purl"],
        "externalReferences": [*described.get("externalReferences", ()), *files],
    }


def _dependencies(found: list[Bom], refs: dict[str, str]) -> list[Bom]:
    """Return who needs whom, of what is in the document."""
    return sorted(
        (
            {
                "ref": refs[one["ref"]],
                "dependsOn": sorted(
                    refs[other] for other in one.get("dependsOn", ()) if other in refs
                ),
            }
            for one in found
            if one["ref"] in refs
        ),
        key=lambda one: str(one["ref"]),
    )


def _named(requirements: str) -> set[str]:
    wanted = requirements.partition("# --- development")[0]
    return {
        canonicalize_name(name)
        for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==", wanted, re.M)
    }


def _key(component: Bom) -> tuple[str, str]:
    return canonicalize_name(component["name"]), component["version"]


def main() -> None:
    locked, installed, requirements = (Path(path).read_text() for path in sys.argv[1:])
    bom = merged(json.loads(locked), json.loads(installed), named=_named(requirements))
    json.dump(bom, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
