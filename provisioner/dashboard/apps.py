from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "provisioner.dashboard"

    def ready(self) -> None:
        from provisioner.dashboard import audit_signals
        from provisioner.notify import audit_log

        audit_signals.watch()
        audit_log.listen()
