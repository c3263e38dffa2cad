"""Serve pages and API: `cloneyard-server web`."""

from __future__ import annotations

import os
import sys

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Serve pages and API by gunicorn, after collecting static files in VAR_DIR. "
        "gunicorn takes more options from GUNICORN_CMD_ARGS, such as --workers=4."
    )

    def handle(self, *args: object, **options: object) -> None:
        call_command("collectstatic", interactive=False, verbosity=0)
        # This process becomes gunicorn: signals of systemd reach it.
        config = ("--config", "python:provisioner.webserver")
        command = [sys.executable, "-m", "gunicorn", *config]
        os.execv(sys.executable, command)  # noqa: S606 - no shell is wanted
