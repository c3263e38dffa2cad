"""A directory with people in it."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.directory_people import ADMINISTRATORS
from tests.support.slapd import Slapd, slapd, slapd_server

__all__ = ["directory", "slapd", "slapd_server"]


@pytest.fixture
def directory(slapd: Slapd, settings: Settings, db: None) -> Slapd:
    """Cloneyard with this directory, as settings.py would have it."""
    settings.DIRECTORY = slapd.directory()
    settings.LDAP_ADMINISTRATORS = [ADMINISTRATORS]
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "provisioner.directory.backends.DirectoryPasswords",
    ]
    return slapd
