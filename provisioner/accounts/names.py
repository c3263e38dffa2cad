"""Valid names and texts, as other systems and pages use them."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from provisioner.lib.refusals import InvalidRequest

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
    """Refuse anything but one line of text: it goes into mails and logs.

    Raises: ValidationError.
    """
    if _CONTROL.search(text):
        raise ValidationError(
            "Write one line of text, without control characters.", code="not_one_line"
        )


def one_line(text: str, *, word: str, most: int) -> str:
    """Return a text that people wrote, stripped.

    Raises: InvalidRequest if it is not one line, or too long.
    """
    text = text.strip()
    if len(text) > most:
        raise InvalidRequest(f"{word} has at most {most} characters.")
    try:
        check_one_line(text)
    except ValidationError as error:
        raise InvalidRequest(f"{word}: {error.messages[0]}") from error
    return text
