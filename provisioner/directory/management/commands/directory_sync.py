"""Follow the directory now: `python manage.py directory_sync [--preview]`."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.directory.actions.syncs import directory_sync
from provisioner.directory.models import DirectorySync


class Command(BaseCommand):
    help = (
        "Close accounts of people who are disabled in the directory or gone from it, "
        "and update teams and roles, as each night. Exits with 1 if it fails or asks."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--preview", action="store_true", help="Say what it would do, do nothing."
        )
        parser.add_argument(
            "--most",
            type=int,
            help="Close this many accounts at most, instead of LDAP_MOST_CLOSED.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        sync = directory_sync(is_preview=options["preview"], most=options["most"])
        for change in sync.changes.select_related("account"):
            self.stdout.write(
                f"{change.account.username}: {change.get_action_display().lower()}. "
                f"{change.sentence}"
            )
        counted = f"{sync.changes.count()} of {sync.accounts_known} accounts"
        if sync.state in (DirectorySync.State.FAILED, DirectorySync.State.ASKS):
            raise CommandError(sync.message, returncode=1)
        would = "would change" if options["preview"] else "changed"
        self.stdout.write(f"{counted} {would}.")
