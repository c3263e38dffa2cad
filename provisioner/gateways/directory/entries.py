"""What an entry says of a person: who they are, their uid, whether they may sign in."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.gateways.directory.configuration import Directory
from provisioner.gateways.directory.connection import Entry
from provisioner.gateways.directory.names import subject_of

# Source: MS-ADTS 2.2.16, userAccountControl; MS-ADA1 2.2, accountExpires, which counts
# 100 ns from 1601; 0 and the highest mean never.
ACCOUNTDISABLE = 0x2
NEVER_EXPIRES = (0, 2**63 - 1)
FILETIME_BEGINS = dt.datetime(1601, 1, 1, tzinfo=dt.UTC)
# Source: draft-behera-ldap-password-policy-11, 5.3.3: locked until somebody unlocks it.
LOCKED_FOR_GOOD = "000001010000Z"

ATTRIBUTES = (
    *("mail", "givenName", "sn", "uidNumber", "gidNumber", "objectSid"),
    "userPrincipalName",
    *("primaryGroupID", "memberOf", "userAccountControl", "accountExpires"),
    *("nsAccountLock", "shadowExpire", "pwdAccountLockedTime"),
)


@dataclass(frozen=True, kw_only=True)
class DirectoryPerson:
    """A person as the directory has them.

    `subject` identifies them for ever. `why_disabled` is half a sentence, "" if they
    may sign in.
    """

    dn: str
    subject: str
    name: str
    email: str
    first_name: str
    last_name: str
    ids: tuple[int, int] | None
    groups: frozenset[str]
    why_disabled: str


def is_called(directory: Directory, entry: Entry, name: str) -> bool:
    """Return whether an entry has this name, whatever the case.

    Servers ignore more, such as letters that nobody sees. Each such spelling would have
    tries of its own at the password.
    """
    attributes = (directory.username_attribute, "userPrincipalName", "mail")
    names = [text for attribute in attributes for text in entry.texts(attribute)]
    return name.casefold() in (each.casefold() for each in names)


def person_of(
    directory: Directory,
    entry: Entry,
    *,
    name: str,
    groups: frozenset[str],
    now: dt.datetime,
) -> DirectoryPerson | None:
    """Return the person, or None for an entry without what identifies it.

    Of several names, the one that they typed is theirs.
    """
    identifiers = entry.values.get(directory.id_attribute.lower(), ())
    names = entry.texts(directory.username_attribute)
    if len(identifiers) != 1:
        return None
    subject = subject_of(directory.id_attribute, identifiers[0])
    if "\0" in subject:  # of an attribute that identifies nobody
        return None
    typed = [each for each in names if each.casefold() == name.casefold()]
    return DirectoryPerson(
        dn=entry.dn,
        subject=subject,
        name=(typed or sorted(names) or [""])[0],
        email=entry.text("mail"),
        first_name=entry.text("givenName"),
        last_name=entry.text("sn"),
        ids=_ids_said(entry) or _ids_by_rule(directory, entry),
        groups=groups,
        why_disabled=why_disabled(entry, now=now),
    )


def why_disabled(entry: Entry, *, now: dt.datetime) -> str:
    """Return why an account may not be used, "" if it may."""
    if (_number(entry.text("userAccountControl")) or 0) & ACCOUNTDISABLE:
        return "disabled"
    if entry.text("nsAccountLock").casefold() == "true":
        return "locked"
    if entry.text("pwdAccountLockedTime") == LOCKED_FOR_GOOD:
        return "locked"
    expires = _number(entry.text("accountExpires"))
    if expires is not None and expires not in NEVER_EXPIRES:
        passed = (now - FILETIME_BEGINS) // dt.timedelta(microseconds=1)
        if expires // 10 <= passed:
            return "expired"
    # Source: shadow(5): days since 1970; -1 and nothing mean never.
    day = _number(entry.text("shadowExpire"))
    if day is not None and 0 <= day <= now.timestamp() // 86_400:
        return "expired"
    return ""


def _ids_said(entry: Entry) -> tuple[int, int] | None:
    uid, gid = _number(entry.text("uidNumber")), _number(entry.text("gidNumber"))
    return None if uid is None or gid is None else (uid, gid)


def _ids_by_rule(directory: Directory, entry: Entry) -> tuple[int, int] | None:
    """Return uid and gid made of the last part of a SID, as idmap_rid does.

    Source: idmap_rid(8), "ID = RID + LOW_RANGE_ID"; MS-DTYP 2.4.2.2.
    """
    sids = entry.values.get("objectsid", ())
    group = _number(entry.text("primaryGroupID"))
    if not directory.id_base or len(sids) != 1 or len(sids[0]) < 12 or group is None:
        return None
    rid = int.from_bytes(sids[0][-4:], "little")
    return directory.id_base + rid, directory.id_base + group


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    # No number of a directory has more than 64 bits.
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        return None
    return int(text)
