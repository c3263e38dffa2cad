"""What the wheel has beyond the package: its dependencies and the compiled walk.

Source: https://hatch.pypa.io/latest/plugins/build-hook/custom/
"""

from __future__ import annotations

import importlib.util
import re
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Requirements(MetadataHookInterface):
    """The pinned dependencies: the application's, and the lab's as an extra."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "requirements.txt").read_text()
        _, application, rest = text.partition("# --- the application")
        application, _, rest = rest.partition("# --- the lab")
        lab, _, _ = rest.partition("# --- development")
        metadata["dependencies"] = _pins(application)
        metadata["optional-dependencies"] = {"lab": _pins(lab)}


class Walk(BuildHookInterface[Any]):
    """The compiled walk for this machine; without a compiler a wheel without it.

    It is installed where provisioner/gateways/hosts/trees/native.py looks.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        native = _native(self.root)
        try:
            program = native.build()
        except native.BuildFailed as why:
            self.app.display_warning(f"The wheel has no compiled walk: {why}.")
            return
        build_data["shared_data"][str(program)] = f"libexec/cloneyard/{program.name}"
        build_data["pure_python"] = False
        platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
        build_data["tag"] = f"py3-none-{platform}"


def _pins(section: str) -> list[str]:
    return [
        line.partition("#")[0].strip()
        for line in section.splitlines()
        if "==" in line.partition("#")[0]
    ]


def _native(root: str) -> Any:
    """Load the module that compiles, without the packages around it."""
    path = Path(root, "provisioner/gateways/hosts/trees/native.py")
    spec = importlib.util.spec_from_file_location("native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
