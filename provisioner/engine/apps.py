from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class EngineConfig(AppConfig):
    name = "provisioner.engine"

    def ready(self) -> None:
        """Load what features register: refusals, workflows, receivers and checks."""
        autodiscover_modules("refusals", "workflows", "receivers", "system_checks")
