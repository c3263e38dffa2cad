from __future__ import annotations

from django.apps import AppConfig


class SitesConfig(AppConfig):
    name = "provisioner.sites"
