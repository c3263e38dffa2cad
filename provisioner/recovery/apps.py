from __future__ import annotations

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    name = "provisioner.recovery"
