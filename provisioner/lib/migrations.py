"""Whether the database has the tables of this release."""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from importlib.util import find_spec

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

NAMED = 3


@functools.cache
def _of_this_release() -> frozenset[tuple[str, str]]:
    """Return the migrations of all apps, by app and name; none of them is imported."""
    found = set()
    for config in apps.get_app_configs():
        module, _ = MigrationLoader.migrations_module(config.label)
        if module is None or find_spec(module) is None:
            continue
        path = import_module(module).__path__
        found |= {
            (config.label, each.name)
            for each in pkgutil.iter_modules(path)
            if each.name[0] not in "_~"
        }
    return frozenset(found)


def missing_migrations() -> list[str]:
    """Return the migrations that the database lacks. Two queries."""
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in _of_this_release() - applied.keys())


def why_not_migrated() -> str:
    """Return what the database lacks as a sentence, "" if nothing.

    Those of a newer release do no harm: it runs beside ours.
    """
    missing = missing_migrations()
    if not missing:
        return ""
    if len(missing) == len(_of_this_release()):
        return "The database has no tables yet: run `cloneyard-server migrate` first."
    names = ", ".join(missing[:NAMED])
    more = len(missing) - NAMED
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"The database is of an older release: it lacks {names}{rest}. Run "
        "`cloneyard-server migrate` first."
    )
