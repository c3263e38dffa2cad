"""Check names that people type."""

from __future__ import annotations

from django.core.exceptions import ValidationError

from provisioner.lib.names import name_validator
from provisioner.lib.refusals import InvalidRequest


def check_name(name: str) -> None:
    """Refuse what is not a valid name.

    Raises: InvalidRequest.
    """
    try:
        name_validator(name)
    except ValidationError as error:
        raise InvalidRequest(f"“{name}” is not a name: {error.message}") from error
