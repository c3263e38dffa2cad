"""What Python and pytest compile is kept, and the workers share the compiling.

Taking assertions apart is three quarters of a collection, and each server that a
test starts would compile the product anew.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def keep_what_is_compiled() -> None:
    """Write bytecode, in children, too, whatever the environment asks for."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let each worker begin elsewhere: it reads what the others have written."""
    worker: dict[str, str] = getattr(session.config, "workerinput", {})
    if worker:
        files = _test_files(session.config.args)
        number = int(worker["workerid"].removeprefix("gw"))
        first = len(files) * number // int(worker["workercount"])
        for file in files[first:] + files[:first]:
            module = file.relative_to(ROOT).with_suffix("").parts
            with contextlib.suppress(Exception):  # the collection says what it is
                importlib.import_module(".".join(module))
    return (yield)


def _test_files(arguments: list[str]) -> list[Path]:
    named = [ROOT / argument.partition("::")[0] for argument in arguments]
    return [
        file
        for path in named
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
