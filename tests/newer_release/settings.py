"""The settings of a later release."""

from __future__ import annotations

from provisioner.settings import *  # noqa: F403
from provisioner.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.newer_release"]
