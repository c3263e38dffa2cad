"""The rule for names that people type, and how other systems spell them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from provisioner.lib.refusals import InvalidRequest

LONGEST_NAME = 40

name_validator = RegexValidator(
    rf"^[a-z](?:[a-z0-9]|-(?=[a-z0-9])){{0,{LONGEST_NAME - 1}}}\Z",
    f"Use 1 to {LONGEST_NAME} lower-case letters, digits and single hyphens, beginning "
    "with a letter and ending with a letter or a digit.",
    code="invalid_name",
)


def underscored(name: str) -> str:
    """Return a name with underscores for hyphens, as volume names have no hyphens.

    Our names have no underscores, so it can be reversed.
    """
    return name.replace("-", "_")


def tag_in(comment: str) -> str:
    """Return the start of a volume's comment: the tag, if the volume is ours."""
    return comment.partition(" ")[0]


def same_tag(one: str, other: str) -> bool:
    """Return whether two comments of volumes have the same tag, whatever follows."""
    return tag_in(one) == tag_in(other)


TAG_PREFIX = "cloneyard:v1:"


def check_name(name: str) -> None:
    """Refuse what is not a valid name.

    Raises: InvalidRequest.
    """
    try:
        name_validator(name)
    except ValidationError as error:
        raise InvalidRequest(f"“{name}” is not a name: {error.message}") from error
