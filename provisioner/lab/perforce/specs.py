"""Forms: their definitions, and reading and writing them as text.

A form's fields are a dict of tag -> text, or list of lines for list types.

Source: p4 help client, user, change, depot; p4 spec -o.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

FieldValue = str | list[str]
Fields = dict[str, FieldValue]


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a form definition."""

    tag: str
    code: int
    type: str
    options: str

    @property
    def is_list(self) -> bool:
        return self.type in ("wlist", "llist")

    @property
    def is_block(self) -> bool:
        """Return whether the value is below the tag, each line behind a tab."""
        return self.is_list or self.type in ("text", "bulk")

    @property
    def is_required(self) -> bool:
        return "rq" in self.options.split()

    def option(self, name: str) -> str:
        """Return the value of an option; "" if it is missing."""
        for option in self.options.split():
            key, _, value = option.partition(":")
            if key == name:
                return value
        return ""

    @property
    def persistence(self) -> str:
        """Return the last word of a field's line in `p4 spec`."""
        flags = self.options.split()
        if "rq" in flags:
            return "key" if "ro" in flags else "required"
        return "once" if "ro" in flags else "optional"


@dataclass(frozen=True, kw_only=True)
class SpecDefinition:
    """The fields of one kind of form, in the order of the form."""

    kind: str
    fields: tuple[Field, ...]

    @property
    def text(self) -> str:
        """Return the definition as the client wants it."""
        return "".join(
            ";".join(
                [field.tag, f"code:{field.code}"]
                + ([] if field.type == "word" else [f"type:{field.type}"])
                + field.options.split()
            )
            + ";;"
            for field in self.fields
        )

    def field(self, tag: str) -> Field | None:
        return next((f for f in self.fields if f.tag.lower() == tag.lower()), None)


def define(kind: str, table: str) -> SpecDefinition:
    """Return the definition of a kind of form from a table of its fields."""
    fields = []
    for line in table.strip().splitlines():
        tag, code, field_type, *options = line.split()
        fields.append(
            Field(tag=tag, code=int(code), type=field_type, options=" ".join(options))
        )
    return SpecDefinition(kind=kind, fields=tuple(fields))


CLIENT = define(
    "client",
    """
Client 301 word rq ro seq:1 len:32
Update 302 date ro fmt:L seq:2 len:20
Access 303 date ro fmt:L seq:4 len:20
Owner 304 word fmt:R seq:3 len:32
Host 305 word fmt:R seq:5 len:32
Description 306 text len:128
Root 307 line rq len:64
AltRoots 308 llist len:64
Options 309 line len:64 @@OPTIONS@@
SubmitOptions 313 select fmt:L len:25 @@SUBMIT@@
LineEnd 310 select fmt:L len:12 val:local/unix/mac/win/share
Stream 314 line len:64
StreamAtChange 316 line len:64
ServerID 315 line ro len:64
Type 318 select len:10 val:writeable/readonly/graph/partitioned/partitioned-jnl
Backup 319 select len:10 val:enable/disable
View 311 wlist fmt:C words:2 len:64
ChangeView 317 llist len:64
""".replace(
        "@@OPTIONS@@",
        "val:noallwrite/allwrite,noclobber/clobber,nocompress/compress,"
        "unlocked/locked,nomodtime/modtime,normdir/rmdir,noaltsync/altsync",
    ).replace(
        "@@SUBMIT@@",
        "val:submitunchanged/submitunchanged+reopen/revertunchanged/"
        "revertunchanged+reopen/leaveunchanged/leaveunchanged+reopen",
    ),
)
USER = define(
    "user",
    """
User 651 word rq ro seq:1 len:32
Type 659 word ro fmt:R len:10
Email 652 word rq fmt:R seq:3 len:32
Update 653 date ro fmt:L seq:2 len:20
Access 654 date ro fmt:L len:20
FullName 655 line rq fmt:R len:32
JobView 656 line len:64
Password 657 word len:32
AuthMethod 662 word fmt:L len:10 val:perforce/perforce+2fa/ldap/ldap+2fa
Reviews 658 wlist len:64
""",
)
CHANGE = define(
    "change",
    """
Change 201 word rq ro fmt:L seq:1 len:10
Date 202 date ro fmt:R seq:3 len:20
Client 203 word ro fmt:L seq:2 len:32
User 204 word ro fmt:L seq:4 len:32
Status 205 word ro fmt:R seq:5 len:10
Type 211 select fmt:L seq:6 len:10 val:public/restricted
ImportedBy 212 line ro fmt:L len:32
Identity 213 line
Description 206 text rq seq:7
JobStatus 207 select fmt:I seq:9
Jobs 208 wlist seq:8 len:32
Stream 214 line len:64
Files 210 llist len:64
""",
)
JOB = define(
    "job",
    """
Job 101 word rq len:32
Status 102 select rq len:10 val:open/suspended/closed
User 103 word rq len:32
Date 104 date ro len:20
Description 105 text rq
""",
)
DEPOT = define(
    "depot",
    """
Depot 251 word rq ro len:32
Owner 252 word len:32
Date 253 date ro len:20
Description 254 text len:128
Type 255 word rq len:10
Address 256 word len:64
Suffix 258 word len:64
StreamDepth 260 word len:64
Map 257 word rq len:64
SpecMap 259 wlist len:64
""",
)
PROTECT = define(
    "protect",
    """
Protections 501 wlist fmt:C words:5 opt:default len:64
""",
)
# The codes of streams, labels and groups are not verified; no client looks at them.
STREAM = define(
    "stream",
    """
Stream 701 word rq ro len:64
Update 705 date ro fmt:L len:20
Access 706 date ro fmt:L len:20
Owner 704 word len:32
Name 703 line rq len:32
Parent 702 word rq len:64
Type 708 word rq len:32
Description 709 text len:128
Options 707 line len:64
ParentView 713 select len:16 val:inherit/noinherit
Paths 710 wlist rq words:2 maxwords:3 len:64
Remapped 711 wlist words:2 len:64
Ignored 712 wlist words:1 len:64
""",
)
LABEL = define(
    "label",
    """
Label 351 word rq ro fmt:L len:32
Update 352 date ro fmt:L len:20
Access 353 date ro fmt:L len:20
Owner 354 word fmt:R len:32
Description 355 text len:128
Options 356 line len:64
Revision 357 word len:64
ServerID 358 line ro len:64
View 311 wlist fmt:C len:64
""",
)
BRANCH = define(
    "branch",
    """
Branch 451 word rq ro fmt:L len:32
Update 452 date ro fmt:L len:20
Access 453 date ro fmt:L len:20
Owner 454 word fmt:R len:32
Description 455 text len:128
Options 456 line fmt:L len:32 val:unlocked/locked
View 311 wlist fmt:C words:2 len:64
""",
)
GROUP = define(
    "group",
    """
Group 401 word rq ro len:32
Description 411 text len:128
MaxResults 402 word len:12
MaxScanRows 403 word len:12
MaxLockTime 407 word len:12
MaxOpenFiles 413 word len:12
MaxMemory 415 word len:12
Timeout 406 word len:12
IdleTimeout 416 word len:12
PasswordTimeout 409 word len:12
Subgroups 404 wlist len:32
Owners 408 wlist len:32
Users 405 wlist len:32
""",
)
# Source: the fields of both forms in the messages of the published client.
TYPEMAP = define(
    "typemap",
    """
TypeMap 601 wlist fmt:C words:2 len:64
""",
)
TRIGGERS = define(
    "triggers",
    """
Triggers 551 wlist fmt:C words:4 len:64
""",
)

SPEC = define(
    "spec",
    """
Fields 351 wlist words:5 rq
Words 352 wlist words:2
Formats 353 wlist words:3
Values 354 wlist words:2
Presets 355 wlist words:2
Openable 362 wlist words:2
Maxwords 361 wlist words:2
Comments 356 text
""",
)


class FormError(Exception):
    """The text is not a form of this kind; the message says why."""


def parse_form(text: str, *, definition: SpecDefinition) -> Fields:
    """Return the fields of a form's text, without empty ones.

    Raises: FormError.
    """
    fields: Fields = {}
    field: Field | None = None
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.startswith("#"):
            continue  # `##` comments of a list stand behind a tab and are kept
        if line[:1] in ("\t", " ") and field is not None and field.is_block:
            _append(fields, field, line[1:] if line[0] == "\t" else line.strip())
        elif line.strip():
            field = _tagged_line(fields, line, number, definition)
        elif field is not None and field.type == "text" and not field.is_list:
            _append(fields, field, "")
    # A list that is there and empty says so: a view that maps nothing.
    return {
        tag: value for tag, value in _tidied(fields).items() if value or value == []
    }


def _tagged_line(
    fields: Fields, line: str, number: int, definition: SpecDefinition
) -> Field:
    match = re.fullmatch(r"(\w+):[ \t]*(.*)", line)
    if match is None:
        raise FormError(f"Syntax error in '{line.strip()}' at line {number}.")
    field = definition.field(match[1])
    if field is None:
        raise FormError(f"Unknown field name '{match[1]}' at line {number}.")
    value = match[2].rstrip()
    if field.is_list or field.is_block:
        fields[field.tag] = [value] if value else []
    else:
        fields[field.tag] = _unquoted(value)
    return field


def _append(fields: Fields, field: Field, line: str) -> None:
    lines = fields[field.tag]
    assert isinstance(lines, list)
    if field.is_list:
        if line.strip():
            lines.append(line.strip())
    else:
        lines.append(line)


def _tidied(fields: Fields) -> Fields:
    """Return fields with the lines of each text block joined."""
    tidy: Fields = {}
    for tag, value in fields.items():
        if isinstance(value, list) and tag in _TEXT_TAGS:
            text = "\n".join(value).strip("\n")
            tidy[tag] = text + "\n" if text else ""
        else:
            tidy[tag] = value
    return tidy


_TEXT_TAGS = frozenset(
    field.tag
    for definition in (CLIENT, USER, CHANGE, DEPOT, STREAM, LABEL, BRANCH, GROUP)
    for field in definition.fields
    if field.is_block and not field.is_list
)


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


def format_form(fields: Mapping[str, FieldValue], *, definition: SpecDefinition) -> str:
    """Return a form's text."""
    blocks = []
    for field in definition.fields:
        value = fields.get(field.tag)
        if not value:
            continue
        if field.is_block:
            lines = value if isinstance(value, list) else value.rstrip("\n").split("\n")
            blocks.append(
                "\n".join([f"{field.tag}:", *(f"\t{line}".rstrip() for line in lines)])
                + "\n"
            )
        else:
            assert isinstance(value, str)
            quote = field.type == "word" and re.search(r"\s", value)
            blocks.append(f"{field.tag}:\t" + (f'"{value}"' if quote else value) + "\n")
    return "\n".join(blocks)


def tagged(fields: Mapping[str, FieldValue]) -> dict[str, str]:
    """Return fields as the variables of a tagged record, lists numbered."""
    record = {}
    for tag, value in fields.items():
        if isinstance(value, list):
            record.update({f"{tag}{index}": line for index, line in enumerate(value)})
        elif value:
            record[tag] = value
    return record
