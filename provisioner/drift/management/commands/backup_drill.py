"""Prove that a dump can be restored: `manage.py backup_drill FILE`.

FILE is made by `manage.py backup`, or `pg_dump --format=custom`. It is restored into a
database of its own on the same server, and that is dropped: nothing of ours changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.drift.backups import BackupFailed, Drill, drill
from provisioner.lib.times import duration_text

NAMES_SHOWN = 10


class Command(BaseCommand):
    help = (
        "Restore a dump beside the database, say what is in it and what was made "
        "since, and drop it. Exits with 1 if it cannot be restored or is too old."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dump", type=Path, help="A file that `backup` made.")
        parser.add_argument(
            "--hours",
            type=float,
            default=26.0,
            help="How old its newest event may be (default: 26).",
        )

    def handle(self, *args: Any, dump: Path, hours: float, **options: Any) -> None:
        if not dump.is_file():
            raise CommandError(f"There is no file {dump}.")
        try:
            found = drill(dump)
        except BackupFailed as error:
            raise CommandError(f"The dump cannot be restored.\n{error}") from error
        self._print(found)
        if found.unknown:
            raise CommandError(
                "The dump is of a newer release: restore it with that one."
            )
        if found.age is None or found.age.total_seconds() > hours * 3600:
            raise CommandError(f"The dump is older than {hours:g} hours.")

    def _print(self, found: Drill) -> None:
        say = self.stdout.write
        say(f"Restored and dropped again in {found.seconds:.1f} s.")
        if found.newest_at is not None and found.age is not None:
            ago = duration_text(round(found.age.total_seconds()))
            say(f"Newest event: {found.newest_at:%Y-%m-%d %H:%M} UTC, {ago} ago.")
        for count in found.counts:
            say(f"{count.what:<12}{count.restored:>10,} restored{count.now:>10,} now")
        if found.to_adopt:
            names = ", ".join(found.to_adopt[:NAMES_SHOWN])
            more = len(found.to_adopt) - NAMES_SHOWN
            rest = f" and {more} more" if more > 0 else ""
            say(f"Newer than the dump, so drift would adopt them: {names}{rest}.")
        if found.ahead:
            say(f"Run migrate after a restore: {len(found.ahead)} migrations are new.")
