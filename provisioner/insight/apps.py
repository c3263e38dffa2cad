from __future__ import annotations

from django.apps import AppConfig


class InsightConfig(AppConfig):
    name = "provisioner.insight"
