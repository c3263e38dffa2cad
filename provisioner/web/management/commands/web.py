"""Serve pages and API: `cloneyard-server web`."""

from __future__ import annotations

import argparse
import os
import socket
import sys

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from gunicorn.util import parse_address

from provisioner.lib.databases import unless_database_is_away
from provisioner.lib.migrations import why_not_migrated


class Command(BaseCommand):
    help = (
        "Serve pages and API by gunicorn, after collecting static files in VAR_DIR. "
        "gunicorn takes more options from GUNICORN_CMD_ARGS, such as --workers=4."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--collected",
            action="store_true",
            help="Static files are in VAR_DIR already, as in the image.",
        )

    def handle(self, *args: object, **options: object) -> None:
        if settings.HEALTH_BIND and settings.HEALTH_BIND == settings.WEB_BIND:
            raise CommandError(
                "HEALTH_BIND has to be another address than WEB_BIND, and both are "
                f"{settings.WEB_BIND}."
            )
        check_address("WEB_BIND", settings.WEB_BIND)
        check_address("HEALTH_BIND", settings.HEALTH_BIND)
        # While the database is away, pages say so; it may be there soon.
        with unless_database_is_away():
            if why := why_not_migrated():
                raise CommandError(why)
        connection.close()
        if not options["collected"]:
            collect()
        # This process becomes gunicorn: signals of systemd reach it.
        config = ("--config", "python:provisioner.webserver")
        command = [sys.executable, "-m", "gunicorn", *config]
        os.execv(sys.executable, command)  # noqa: S606 - no shell is wanted


def collect() -> None:
    """Collect static files. Raises: CommandError."""
    try:
        call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as error:
        raise CommandError(
            f"Static files cannot be written below VAR_DIR: {error.filename}: "
            f"{error.strerror}."
        ) from error


def check_address(name: str, text: str) -> None:
    """Refuse an address that nobody can listen at.

    gunicorn would try again for seconds, and say it in a dozen lines.

    Raises: CommandError.
    """
    try:
        address = parse_address(text)
    except RuntimeError as error:
        raise CommandError(f"{name} has to be HOST:PORT, and is “{text}”.") from error
    if not text or not isinstance(address, tuple):
        return  # none is wanted, or a socket that has no port
    host, port = address
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trying.bind((host, port))
            trying.listen()
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "no such port"
        raise CommandError(f"Nothing can listen at {name} {text}: {why}.") from error
