"""How a directory is reached and read, checked before anybody signs in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import SplitResult, urlsplit

NAME = "{name}"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
DN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*=[^=]+(,.*)?", re.DOTALL)
GROUPS = ("memberof", "search", "chain", "none")


@dataclass(frozen=True)
class Kind:
    """What settings are by default for one kind of directory."""

    user_filter: str
    id_attribute: str
    username_attribute: str
    groups: str


KINDS = {
    "openldap": Kind(
        "(&(objectClass=inetOrgPerson)(uid={name}))", "entryUUID", "uid", "search"
    ),
    "active-directory": Kind(
        "(&(objectCategory=person)(objectClass=user)(sAMAccountName={name}))",
        *("objectGUID", "sAMAccountName", "chain"),
    ),
}


class BadConfiguration(ValueError):
    """A setting is missing or wrong; the sentence names it."""


@dataclass(frozen=True, kw_only=True)
class Directory:
    """One directory, on one or several servers.

    `direct_bind` is the name that people bind with themselves, with {name} in it; ""
    means that `bind_dn` reads the directory. `groups` says how groups are found: by the
    attribute memberOf, by a search for members, by Active Directory's rule that follows
    nested groups itself, or not at all. `id_base` makes uids of SIDs, as winbind's
    idmap_rid does; 0: no uids are made.
    """

    urls: tuple[str, ...]
    name: str
    start_tls: bool
    ca_file: str
    bind_dn: str
    bind_password: str = field(repr=False)
    direct_bind: str
    user_base: str
    user_filter: str
    id_attribute: str
    username_attribute: str
    group_base: str
    groups: str
    follows_nested: bool
    id_base: int
    timeout_seconds: int

    @classmethod
    def of(cls, kind: str, *, urls: list[str], name: str, **settings: object) -> Self:
        """Return a directory; what is empty is as usual for its kind.

        Raises: BadConfiguration.
        """
        usual = KINDS.get(kind)
        if usual is None:
            raise BadConfiguration(f"LDAP_KIND has to be one of {', '.join(KINDS)}.")
        for setting, value in vars(usual).items():
            settings[setting] = settings.get(setting) or value
        settings["group_base"] = settings.get("group_base") or settings["user_base"]
        first = _split(urls[0])
        name = name or (first and first.hostname) or ""
        directory = cls(urls=tuple(urls), name=name, **settings)  # type: ignore[arg-type]  # settings.py has the types
        directory.check()
        return directory

    @property
    def issuer(self) -> str:
        """Name the directory in identities: its domain, wherever people are in it."""
        parts = [part.strip().lower() for part in self.user_base.split(",")]
        domain = [part for part in parts if part.startswith("dc=")]
        return f"ldap:{','.join(domain or parts)}"

    def check(self) -> None:
        """Refuse what could not work, or would send passwords in clear text.

        Raises: BadConfiguration.
        """
        for url in self.urls:
            self._check_url(url)
        for setting, dn in (
            ("LDAP_USER_BASE", self.user_base),
            ("LDAP_GROUP_BASE", self.group_base),
        ):
            if not DN.fullmatch(dn):
                raise BadConfiguration(
                    f"{setting} has to be a name such as ou=people,dc=example,dc=com."
                )
        for setting, attribute in (
            ("LDAP_ID_ATTRIBUTE", self.id_attribute),
            ("LDAP_USERNAME_ATTRIBUTE", self.username_attribute),
        ):
            if not ATTRIBUTE.fullmatch(attribute):
                raise BadConfiguration(f"{setting} has to name one attribute.")
        if self.user_filter.count("(") != self.user_filter.count(")") or (
            NAME not in self.user_filter or not self.user_filter.startswith("(")
        ):
            raise BadConfiguration(
                "LDAP_USER_FILTER has to be a filter with {name} in it, such as "
                "(uid={name})."
            )
        if self.groups not in GROUPS:
            raise BadConfiguration(f"LDAP_GROUPS has to be one of {', '.join(GROUPS)}.")
        self._check_bind()
        if not 1 <= self.timeout_seconds <= 60:
            raise BadConfiguration("LDAP_TIMEOUT_SECONDS has to be from 1 to 60.")

    def _check_bind(self) -> None:
        if bool(self.bind_dn) != bool(self.bind_password):
            raise BadConfiguration(
                "LDAP_BIND_DN and LDAP_BIND_PASSWORD go together: set both or neither."
            )
        if not self.bind_dn and not self.direct_bind:
            raise BadConfiguration(
                "LDAP_URLS needs LDAP_BIND_DN with its password, or LDAP_DIRECT_BIND."
            )
        if self.direct_bind and NAME not in self.direct_bind:
            raise BadConfiguration("LDAP_DIRECT_BIND needs {name} in it.")

    def _check_url(self, url: str) -> None:
        parts = _split(url)
        if parts is None or parts.path.strip("/") or parts.query or "@" in parts.netloc:
            raise BadConfiguration(
                "LDAP_URLS has to be addresses such as ldaps://ldap.example.com."
            )
        is_safe = parts.scheme == "ldaps" or self.start_tls
        if not is_safe and parts.hostname not in LOOPBACK:
            raise BadConfiguration(
                "LDAP_URLS has to begin with ldaps://, or LDAP_START_TLS has to be "
                "true: passwords would be sent in clear text."
            )


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return None
    is_one = parts.scheme in ("ldap", "ldaps") and parts.hostname and has_port
    return parts if is_one else None
