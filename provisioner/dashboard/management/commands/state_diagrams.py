"""Draw the state diagrams of docs/architecture.md from the tables in states.py."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from provisioner.catalog.states import TEMPLATE_TRANSITIONS
from provisioner.copies.states import COPY_TRANSITIONS
from provisioner.efficiency.states import RUN_TRANSITIONS
from provisioner.engine import states as engine_states
from provisioner.mirrors.states import (
    MIRROR_TRANSITIONS,
    MIRRORED_SNAPSHOT_TRANSITIONS,
)
from provisioner.qualification.states import QUALIFICATION_TRANSITIONS
from provisioner.sandboxes.states import SANDBOX_TRANSITIONS
from provisioner.workspaces.states import CLIENT_TRANSITIONS, WORKSPACE_TRANSITIONS

OF_CLIENTS = "Client of a workspace, as far as retirements and restores have settled it"
BEGIN, END = "<!-- state diagrams begin -->", "<!-- state diagrams end -->"


class Command(BaseCommand):
    help = "Write the state diagrams; with --check, say whether they are stale."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        page: Path = settings.BASE_DIR / "docs" / "architecture.md"
        old = page.read_text()
        head, _, rest = old.partition(BEGIN)
        new = f"{head}{BEGIN}\n\n{_diagrams()}\n{END}{rest.partition(END)[2]}"
        if new == old:
            return
        if options["check"]:
            raise CommandError(f"{page} is stale: python manage.py state_diagrams")
        page.write_text(new)


def _diagrams() -> str:
    tables: tuple[tuple[str, Mapping[Any, tuple[Any, ...]]], ...] = (
        ("Workspace", WORKSPACE_TRANSITIONS),
        (OF_CLIENTS, CLIENT_TRANSITIONS),
        ("Template", TEMPLATE_TRANSITIONS),
        ("Mirror", MIRROR_TRANSITIONS),
        ("Snapshot of a mirror", MIRRORED_SNAPSHOT_TRANSITIONS),
        ("Copy of a workspace", COPY_TRANSITIONS),
        ("Sandbox", SANDBOX_TRANSITIONS),
        ("Qualification run", QUALIFICATION_TRANSITIONS),
        ("Run of deduplication", RUN_TRANSITIONS),
        ("Step", engine_states.STEP_TRANSITIONS),
    )
    return "\n".join(_diagram(title, table) for title, table in tables)


def _diagram(title: str, table: Mapping[Any, tuple[Any, ...]]) -> str:
    moves = [
        f"    {source.value} --> {target.value}"
        for source, targets in table.items()
        for target in targets
    ]
    first = f"    [*] --> {next(iter(table)).value}"
    lines = [f"{title}:", "", "```mermaid", "stateDiagram-v2", first, *moves, "```", ""]
    return "\n".join(lines)
