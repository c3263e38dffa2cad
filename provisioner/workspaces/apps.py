from __future__ import annotations

from django.apps import AppConfig


class WorkspacesConfig(AppConfig):
    name = "provisioner.workspaces"

    def ready(self) -> None:
        from provisioner.workspaces import (
            checks,  # noqa: F401  # registers them
            telling,
            watching,
        )

        watching.watch()
        telling.listen()
