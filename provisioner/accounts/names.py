"""What names and texts may look like that leave for other systems and pages."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

PERFORCE_USER = r"\A(?!-)(?!.*\.\.\.)(?!.*%%)[^\s\x00-\x20\x7f-\x9f@#*/\"'=]+\Z"
"""Not an option (`-a`), no wildcard, and nothing that would end a line or a path.

Source: p4 help user, p4 help wildcards.
"""

perforce_user_validator = RegexValidator(
    PERFORCE_USER,
    "Give a name without spaces, @, #, *, %%, ..., quotes, slashes and =, that does "
    "not begin with a hyphen.",
    code="invalid_perforce_user",
)


def check_one_line(text: str) -> None:
    """Refuse what is not one line of text: it goes into mails and logs.

    Raises: ValidationError.
    """
    if _CONTROL.search(text):
        raise ValidationError(
            "Write one line of text, without control characters.", code="not_one_line"
        )
