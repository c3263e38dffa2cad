"""DATABASE_URL, which may name several hosts: the primary and its standbys."""

from __future__ import annotations

from typing import Any

from provisioner.lib import environment

# Of several hosts one may be dead, and its name may still lead to an address: the
# next one is asked soon.
NEXT_HOST_SECONDS = 3


class BadDatabaseUrl(Exception):
    """The URL does not say where the database is; its text is a sentence."""


def database_of(url: str) -> dict[str, Any]:
    """Return what Django needs to know of a database, always with OPTIONS.

    Only a server that takes changes is used: a standby is passed over, and so is a
    former primary that has become one.

    Source: libpq, "Specifying Multiple Hosts" and "target_session_attrs".

    Raises: BadDatabaseUrl; ImproperlyConfigured.
    """
    database: dict[str, Any] = environment.database_of(url)
    options = database.setdefault("OPTIONS", {})
    options.setdefault("target_session_attrs", "read-write")
    hosts = hosts_of(database)
    if len(hosts) > 1:
        options.setdefault("connect_timeout", NEXT_HOST_SECONDS)
        ports = [port for port in str(database["PORT"]).split(",") if port]
        if ports and len(ports) != len(hosts):
            raise BadDatabaseUrl(
                "DATABASE_URL gives ports for some of its hosts: give "
                "one for each, or none."
            )
    return database


def hosts_of(database: dict[str, Any]) -> list[str]:
    """Return the hosts of a database as Django knows it; none if it is here."""
    hosts = str(database.get("HOST") or database["OPTIONS"].get("host", ""))
    return [host for host in hosts.split(",") if host]
