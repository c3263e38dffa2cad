"""Cloneyard with a Perforce server that signs people in."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.perforce_people import (
    ADMINISTRATORS,
    PerforcePeople,
    people_server,
    perforce_people,
)

__all__ = ["people_server", "perforce_people"]


@pytest.fixture
def perforce(perforce_people: PerforcePeople, settings: Settings) -> PerforcePeople:
    """Sign people in with the server, as settings.py would."""
    settings.P4_SIGN_IN_SERVER = perforce_people.row.name
    settings.P4_SIGN_IN_ADMINISTRATORS = [ADMINISTRATORS]
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "provisioner.perforce_sign_in.backends.PerforcePasswords",
    ]
    return perforce_people
