"""Read a log that nobody follows: `manage.py read_server_log commit /tmp/log.gz`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from provisioner.audit_log.actions import record_event
from provisioner.lib.refusals import ActionRefused
from provisioner.server_log.following import oddities_in, read_once, read_text
from provisioner.sites.models import PerforceServer


class Command(BaseCommand):
    help = "Read a whole file of a Perforce server's log, plain or compressed by gzip."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("server", help="Its name.")
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        server = PerforceServer.objects.filter(name=options["server"]).first()
        if server is None:
            raise CommandError(f"There is no Perforce server “{options['server']}”.")
        try:
            counted = read_once(server, options["file"])
        except ActionRefused as refusal:
            raise CommandError(refusal.sentence) from refusal
        said = read_text(counted)
        record_event(
            server,
            kind="server_log_read",
            message=f"{said} from {options['file'].name}.",
            actor=None,
        )
        self.stdout.write(f"{said}.")
        for _, oddity in oddities_in(counted):
            self.stdout.write(f"{oddity}.")
