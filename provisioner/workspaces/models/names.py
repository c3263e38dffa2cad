"""The rule for names that people type, and how far systems spell them."""

from __future__ import annotations

from django.core.validators import RegexValidator

name_validator = RegexValidator(
    r"^[a-z](?:[a-z0-9]|-(?=[a-z0-9])){0,39}\Z",
    "Use 1 to 40 lower-case letters, digits and single hyphens, beginning with a "
    "letter and ending with a letter or a digit.",
    code="invalid_name",
)


def underscored(name: str) -> str:
    """Volume names have no hyphens; our names have no underscores, so this reverses."""
    return name.replace("-", "_")
