"""Steps write rows where no other attempt can have followed: see `StepRun.writing`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PROVISIONER = Path(__file__).resolve().parents[1] / "provisioner"
WRITES = {"save", "update", "create", "get_or_create", "update_or_create", "delete"}
OTHERS = {"record_event", "bulk_create"}


def steps() -> Iterator[Path]:
    yield from PROVISIONER.glob("*/steps*/**/*.py")
    yield from PROVISIONER.glob("*/steps.py")


def written_outside(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that write rows outside of a `with run.writing()`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.With) and any(
            ast.unparse(item.context_expr) == "run.writing()" for item in node.items
        ):
            continue
        if isinstance(node, ast.Call) and is_write(node):
            yield node.lineno
        yield from written_outside(node)


def is_write(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in OTHERS
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in WRITES:
        return False
    whose = ast.unparse(call.func.value)
    is_query = ".objects" in whose
    # What is saved and deleted at Perforce asks for leave itself.
    return is_query or (call.func.attr == "save" and ".clients" not in whose)


def test_rows_are_written_while_no_other_attempt_can_follow() -> None:
    outside = [
        f"{path.relative_to(PROVISIONER)}:{line}"
        for path in steps()
        for line in written_outside(ast.parse(path.read_text()))
    ]

    assert outside == []


def test_a_row_that_is_written_elsewhere_is_found() -> None:
    code = "def ensure(run):\n    Workspace.objects.filter(pk=1).update(name='')\n"

    assert list(written_outside(ast.parse(code))) == [2]
