"""What the commands that read forms share."""

from __future__ import annotations

import re
import time

from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import (
    Fields,
    FormError,
    SpecDefinition,
    parse_form,
)


class FormRefused(CommandError):
    """A form cannot be saved as it is."""


def form_date(seconds: float) -> str:
    """Return a time as forms show it: the server's local time."""
    return time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(seconds))


def day(seconds: float) -> str:
    """Return a time as untagged lists show it."""
    return time.strftime("%Y/%m/%d", time.localtime(seconds))


def read_form(request: Request, definition: SpecDefinition) -> Fields:
    """Return the form the client hands in, read-only dates left out.

    Raises: CommandError.
    """
    text = request.ask_for_form(definition)
    try:
        fields = parse_form(text, definition=definition)
    except FormError as error:
        raise refused(definition.kind, str(error)) from error
    for field in definition.fields:
        if field.type == "date" and "ro" in field.options.split():
            fields.pop(field.tag, None)
        if field.type == "select" and field.tag in fields:
            _check_choice(definition, field.tag, fields, field.options)
    return fields


def _check_choice(
    definition: SpecDefinition, tag: str, fields: Fields, options: str
) -> None:
    match = re.search(r"val:(\S+)", options)
    if match and fields[tag] not in match[1].split("/"):
        raise refused(
            definition.kind, f"Value for field '{tag}' must be one of {match[1]}."
        )


def refused(kind: str, reason: str) -> CommandError:
    """Return the error for a form that cannot be saved."""
    return CommandError(6213, domain=kind, reason=reason)
