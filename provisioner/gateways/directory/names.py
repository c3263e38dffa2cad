"""Names inside filters and distinguished names, and comparing the latter.

Source: RFC 4515, 3 (filters); RFC 4514, 2.4 (distinguished names).
"""

from __future__ import annotations

import re
import uuid

from ldap3.core.exceptions import LDAPInvalidDnError
from ldap3.utils.conv import escape_bytes, escape_filter_chars
from ldap3.utils.dn import escape_rdn, parse_dn

from provisioner.gateways.directory.configuration import NAME

# The attribute whose values are bytes; Microsoft writes their groups in this order.
OBJECT_GUID = "objectguid"


def in_filter(text: str) -> str:
    """Return text escaped for use as a value in a search filter (RFC 4515)."""
    return str(escape_filter_chars(text))


def filter_for(template: str, name: str) -> str:
    return template.replace(NAME, in_filter(name))


def filter_for_anybody(template: str) -> str:
    return template.replace(NAME, "*")


def bind_name(template: str, name: str) -> str:
    """Return the name that somebody binds with: a distinguished name, or another."""
    is_dn = "=" in template
    return template.replace(NAME, escape_rdn(name) if is_dn else name)


def subject_of(attribute: str, value: bytes) -> str:
    """Return what identifies an entry for ever, as text."""
    if attribute.lower() == OBJECT_GUID and len(value) == 16:
        return str(uuid.UUID(bytes_le=value))
    return value.decode(errors="replace")


def subject_in_filter(attribute: str, subject: str) -> str:
    if attribute.lower() == OBJECT_GUID:
        return str(escape_bytes(uuid.UUID(subject).bytes_le))
    return in_filter(subject)


def comparable(dn: str) -> str:
    """Return a distinguished name such that equal ones are equal texts.

    What cannot be read equals nothing.
    """
    try:
        parts = parse_dn(dn, escape=False, strip=True)
    except LDAPInvalidDnError:
        return ""
    return "".join(
        f"{attribute.strip().casefold()}={_comparable_value(value)}{separator}"
        for attribute, value, separator in parts
    )


def lies_below(dn: str, base: str) -> bool:
    name, above = comparable(dn), comparable(base)
    return bool(above) and (name == above or name.endswith(f",{above}"))


def first_value(dn: str) -> str:
    """Return the value that a distinguished name begins with, "" if it has none."""
    try:
        parts = parse_dn(dn, escape=False, strip=True)
    except LDAPInvalidDnError:
        return ""
    return _unescaped(str(parts[0][1])) if parts else ""


def _comparable_value(value: str) -> str:
    plain = " ".join(_unescaped(value).split()).casefold()
    return re.sub(r"([\\,+])", r"\\\1", plain)


def _unescaped(value: str) -> str:
    """Undo escapes: "\\2C" and "\\," are both a comma."""
    out = bytearray()
    rest = value
    while rest:
        letter, rest = rest[0], rest[1:]
        if letter != "\\" or not rest:
            out += letter.encode()
        elif len(rest) > 1 and all(c in "0123456789abcdefABCDEF" for c in rest[:2]):
            out.append(int(rest[:2], 16))
            rest = rest[2:]
        else:
            out += rest[0].encode()
            rest = rest[1:]
    return out.decode(errors="replace")
