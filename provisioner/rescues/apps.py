from __future__ import annotations

from django.apps import AppConfig


class RescuesConfig(AppConfig):
    name = "provisioner.rescues"
