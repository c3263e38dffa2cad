"""The command `cloneyard-server`, which is manage.py in a checkout."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

# As of sysexits.h would be 78; shells and supervisors know 2 as wrong usage.
BADLY_CONFIGURED = 2
AWAY = 1


def main() -> None:
    """Run a command: web, worker, migrate, check, and all others of Django.

    What an operator has to put right is one sentence, without a traceback: a malformed
    setting (the exit code is 2), or a database that does not answer (1).
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        stop(f"Bad configuration: {error}", code=BADLY_CONFIGURED)
    except OperationalError as error:
        if not is_about_the_connection(error):
            raise
        stop(f"The database cannot be used: {in_one_line(error)}", code=AWAY)


def is_about_the_connection(error: OperationalError) -> bool:
    """Return whether there was no connection, or none any more.

    Whatever the server itself says about a statement has an SQLSTATE.
    """
    return getattr(error.__cause__, "sqlstate", None) is None or (
        getattr(error.__cause__, "pgconn", None) is not None
    )


def in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def stop(sentence: str, *, code: int) -> None:
    print(sentence, file=sys.stderr)
    sys.exit(code)
