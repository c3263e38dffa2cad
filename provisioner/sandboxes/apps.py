from __future__ import annotations

from django.apps import AppConfig


class SandboxesConfig(AppConfig):
    name = "provisioner.sandboxes"
