from __future__ import annotations

from django.apps import AppConfig


class DriftConfig(AppConfig):
    name = "provisioner.drift"
