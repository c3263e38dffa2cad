"""Record both conversations: `manage.py record_trace FILE -- worker --queues storage`.

docs/traces.md says what is in the file, and what never is.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandError

from provisioner.gateways.tracing.recording import recording


class Command(BaseCommand):
    help = (
        "Run another command, and record into a new file what it asks ONTAP and "
        "Perforce, with names, secrets and contents replaced."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "command",
            nargs=argparse.REMAINDER,
            help="After --: the command with its options.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        words = [word for word in options["command"] if word != "--"]
        path = options["file"]
        if not words:
            raise CommandError("Name the command to record, after --.")
        if words[0] not in get_commands():
            raise CommandError(f"There is no command {words[0]}.")
        if path.exists():
            raise CommandError(f"{path} exists. Name a new file.")
        with ExitStack() as stack:
            try:
                stack.enter_context(recording(path))
            except OSError as error:
                raise CommandError(
                    f"{path} cannot be written: {error.strerror}. Nothing was run."
                ) from error
            call_command(*words)
        self.stdout.write(f"Recorded into {path}. Read it before you pass it on.")
