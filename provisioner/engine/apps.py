from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class EngineConfig(AppConfig):
    name = "provisioner.engine"

    def ready(self) -> None:
        """Have what each feature registers: its workflows, what it listens to."""
        autodiscover_modules("workflows", "receivers", "system_checks")
