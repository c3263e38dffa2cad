from __future__ import annotations

from django.apps import AppConfig


class IdentitiesConfig(AppConfig):
    name = "provisioner.identities"
