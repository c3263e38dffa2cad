"""Write the client library below var/client, as a project that a wheel is built from.

`make client` builds it; tests and the type checker read it there. Nothing of it is
committed: it follows docs/openapi.yaml.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import fasteners

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
SCHEMA = CHECKOUT / "docs" / "openapi.yaml"
DIRECTORY = CHECKOUT / "var" / "client"
GENERATOR = "openapi-python-client"
MADE_FROM = ".made-from"

# What is in the project beside the generated package, by the name it has there.
BESIDE = {
    "pyproject.toml": HERE / "pyproject.toml",
    "cloneyard_mcp.py": HERE / "mcp_server.py",
    "README.md": CHECKOUT / "docs" / "client.md",
    "LICENSE": CHECKOUT / "LICENSE",
    "NOTICE": CHECKOUT / "NOTICE",
}


class GenerationFailed(Exception):
    """The generator failed, or left out a part of the schema; it says why."""


def ensure_library(directory: Path = DIRECTORY) -> Path:
    """Ensure that the library is that of today's schema, and return where it is.

    Safe to call from several processes at once. Raises: GenerationFailed.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with fasteners.InterProcessLock(f"{directory}.lock"):
        made_from = directory / MADE_FROM
        wanted = _fingerprint()
        if not made_from.is_file() or made_from.read_text() != wanted:
            coming = directory.with_suffix(".new")
            shutil.rmtree(coming, ignore_errors=True)
            _write(coming)
            (coming / MADE_FROM).write_text(wanted)
            shutil.rmtree(directory, ignore_errors=True)
            coming.rename(directory)
    return directory


def _fingerprint() -> str:
    read = hashlib.sha256(importlib.metadata.version(GENERATOR).encode())
    sources = [Path(__file__), HERE / "generator.yaml", SCHEMA, *BESIDE.values()]
    for path in sources:
        read.update(path.read_bytes())
    return read.hexdigest()


def _write(directory: Path) -> None:
    directory.mkdir()
    package = directory / "cloneyard_client"
    programs = Path(sys.executable).parent
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate"),
            *("--path", SCHEMA, "--config", HERE / "generator.yaml"),
            *("--meta", "none", "--output-path", package, "--fail-on-warning"),
        ],
        env={**os.environ, "PATH": f"{programs}:{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise GenerationFailed(ran.stdout + ran.stderr)
    (package / "py.typed").touch()
    for name, source in BESIDE.items():
        shutil.copyfile(source, directory / name)


if __name__ == "__main__":
    print(ensure_library())
