from __future__ import annotations

from django.apps import AppConfig


class HelpConfig(AppConfig):
    name = "provisioner.help"
