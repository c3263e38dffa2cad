"""Parts that the commands which read forms share."""

from __future__ import annotations

import re
import time

from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import (
    Field,
    Fields,
    FieldValue,
    FormError,
    SpecDefinition,
    parse_form,
)
from provisioner.lab.perforce.views import split_words


class FormRefused(CommandError):
    """A form cannot be saved as it is."""


def form_date(seconds: float) -> str:
    """Return a time as forms show it: the server's local time."""
    return time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(seconds))


def day(seconds: float) -> str:
    """Return a time as untagged lists show it."""
    return time.strftime("%Y/%m/%d", time.localtime(seconds))


def read_form(request: Request, definition: SpecDefinition) -> Fields:
    """Return the form that the client sends, without read-only dates.

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
        _check_words(definition, field, fields.get(field.tag, []))
    return fields


def _check_words(definition: SpecDefinition, field: Field, value: FieldValue) -> None:
    """Refuse a line with too many or too few words."""
    if field.type == "word" and isinstance(value, str):
        lines, least, most = [value] if value else [], 1, 1
    elif field.type == "wlist" and isinstance(value, list) and field.option("words"):
        lines, least = value, int(field.option("words"))
        most = int(field.option("maxwords") or least)
    else:
        return
    for line in lines:
        count = len(split_words(line))
        # Without words it is a comment.
        if count and not least <= count <= most:
            raise CommandError(
                4140, because=6213, field=field.tag, domain=definition.kind, reason=""
            )


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
