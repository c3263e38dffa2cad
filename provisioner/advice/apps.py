from __future__ import annotations

from django.apps import AppConfig


class AdviceConfig(AppConfig):
    name = "provisioner.advice"
