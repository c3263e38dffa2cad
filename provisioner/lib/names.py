"""The rule for names that people type, and how far systems spell them."""

from __future__ import annotations

from django.core.validators import RegexValidator

LONGEST_NAME = 40

name_validator = RegexValidator(
    rf"^[a-z](?:[a-z0-9]|-(?=[a-z0-9])){{0,{LONGEST_NAME - 1}}}\Z",
    f"Use 1 to {LONGEST_NAME} lower-case letters, digits and single hyphens, beginning "
    "with a letter and ending with a letter or a digit.",
    code="invalid_name",
)


def underscored(name: str) -> str:
    """Volume names have no hyphens; our names have no underscores, so this reverses."""
    return name.replace("-", "_")


def tag_in(comment: str) -> str:
    """Return what a volume's comment begins with: the tag, in those of ours."""
    return comment.partition(" ")[0]


def same_tag(one: str, other: str) -> bool:
    """Return whether two comments of volumes have one tag, whatever else they say."""
    return tag_in(one) == tag_in(other)


TAG_PREFIX = "cloneyard:v1:"
