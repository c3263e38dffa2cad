"""Dump the database: `manage.py backup FILE`.

It is pg_dump in its custom format, with the password in no list of processes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.drift.backups import BackupFailed, back_up


class Command(BaseCommand):
    help = "Dump the database into a file that only its owner reads."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="It is replaced if it is there.")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            back_up(file)
        except (BackupFailed, OSError) as error:
            raise CommandError(f"The database was not dumped.\n{error}") from error
        self.stdout.write(f"Dumped {file.stat().st_size:,} bytes into {file}.")
