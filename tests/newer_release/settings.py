"""The settings of a later release."""

from __future__ import annotations

import provisioner
from provisioner.settings import *  # noqa: F403
from provisioner.settings import INSTALLED_APPS
from tests.newer_release import RELEASE

provisioner.__version__ = RELEASE  # settings come first: all others import this one
INSTALLED_APPS = [*INSTALLED_APPS, "tests.newer_release"]
