"""What a new database begins with is what older ones have grown into."""

from __future__ import annotations

from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader


def test_what_is_squashed_makes_what_it_stands_for() -> None:
    loader = MigrationLoader(None, replace_migrations=False)
    squashed = [
        (key, migration.replaces)
        for key, migration in loader.disk_migrations.items()
        if key[0] == "workspaces" and migration.replaces
    ]

    assert squashed
    for key, replaced in squashed:
        at_once = loader.project_state(key)
        one_by_one = loader.project_state(tuple(replaced[-1]))
        changes = MigrationAutodetector(one_by_one, at_once).changes(loader.graph)
        assert "workspaces" not in changes, changes["workspaces"][0].operations
