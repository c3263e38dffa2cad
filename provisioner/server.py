"""The command `cloneyard-server`, which is manage.py in a checkout."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run a command: web, worker, migrate, check, and all others of Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")
    execute_from_command_line(sys.argv)
