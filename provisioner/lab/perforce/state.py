"""What all sessions of one server share."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from provisioner.lab.perforce import auth, case
from provisioner.lab.perforce.archives import Archives
from provisioner.lab.perforce.configurables import Configurables
from provisioner.lab.perforce.content import Content
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.protections import UNPROTECTED, Access, table_lines
from provisioner.lab.perforce.specstore import (
    StoredSpec,
    all_specs,
    find_spec,
    save_spec,
    touch_spec,
)

RELEASE = "2024.2"
SERVER_LEVEL = 59


@dataclass(frozen=True, kw_only=True)
class PerforceConfig:
    """How a lab server behaves.

    `root` holds all its data. With port 0 a free one is used; with `or_above` the next
    free one if a port is taken. Without an `admin_password` the administrator starts
    without one, as on a fresh p4d. `security_level` is that of p4d until the
    configurable `security` says another.
    """

    root: Path
    host: str = "127.0.0.1"
    port: int = 0
    or_above: bool = False
    admin_user: str = "cloneyard"
    admin_password: str = "lab-perforce-admin"  # noqa: S105 - a lab's default
    security_level: int = 2
    auto_create_users: bool = True
    # See case.py; it is announced to clients, and a root keeps to it.
    ignores_case: bool = False
    is_unicode: bool = False
    # TLS, for `ssl:` ports, with a certificate made for the root.
    is_encrypted: bool = False
    # The name a client's ServerID is held against; a server starts without one.
    server_id: str = ""
    # What it says that it is; see kinds.
    services: str = "standard"
    # The root of the server that it replicates from, and its address, as info says it.
    replicates: Path | None = None
    target: str = ""
    ticket_lifetime_seconds: float = 43_200.0
    peer_timeout_seconds: float = 600.0
    log_wire: bool = False
    # P4LOG; None where the log goes to standard error.
    log: Path | None = None
    # Where the files of its depots are, if not below the root (server.depot.root).
    depot_root: Path | None = None
    # What it says that it is a release of.
    release: str = RELEASE
    # What `-v` sets; see configurables.
    configurables: Mapping[str, str] = field(default_factory=dict)

    @property
    def files_root(self) -> Path:
        """Where content and archives are."""
        return self.depot_root or self.root

    @property
    def version(self) -> str:
        """Its version, as `p4 info` shows it."""
        return f"P4D/LINUX26X86_64/{self.release}/9999999 (2026/01/01) Cloneyard lab"

    @property
    def binds_clients(self) -> bool:
        """Whether a client that is made there belongs to it."""
        return self.services in ("edge-server", "build-server")

    @property
    def follows_and_binds(self) -> bool:
        """Whether others of its installation must hear of clients made there."""
        return self.replicates is not None and self.binds_clients


@dataclass(kw_only=True)
class ServerState:
    """One thread's handle on a server's state."""

    config: PerforceConfig
    database: Database
    content: Content
    started_at: float = field(default_factory=time.time)

    @property
    def configurables(self) -> Configurables:
        given = {
            "security": str(self.config.security_level),
            "dm.user.noautocreate": "0" if self.config.auto_create_users else "2",
            **self.config.configurables,
        }
        return Configurables(self.database, given=given)

    @property
    def security_level(self) -> int:
        return self.configurables.number("security")

    @property
    def creates_users(self) -> bool:
        """Whether an unknown name becomes a user by its first command."""
        return self.configurables.number("dm.user.noautocreate") == 0

    def limit(self, user: str, tag: str) -> int | None:
        """Return the most generous limit of the user's groups; None for none."""
        given = [group.text(tag) for group in self.groups_of(user)]
        numbers = [int(text) for text in given if text.isdecimal()]
        return None if "unlimited" in given else max(numbers, default=None)

    def protection_lines(self) -> list[str]:
        """Return the protections table as lines."""
        return table_lines(self.database, admin_user=self.config.admin_user)

    def _lines_in_force(self) -> list[str]:
        """Return the effective lines. A server with a password starts protected."""
        is_protected = find_spec(self.database, kind="protect", name="protect")
        if is_protected or self.config.admin_password:
            return self.protection_lines()
        return UNPROTECTED

    def groups_of(self, user: str) -> list[StoredSpec]:
        """Return the groups that contain a user, directly or by a subgroup."""
        groups = list(all_specs(self.database, kind="group"))
        found = [g for g in groups if _has(g.lines("Users"), user)]
        names = {group.name for group in found}
        while above := [
            group
            for group in groups
            if group.name not in names
            and any(_has(group.lines("Subgroups"), name) for name in names)
        ]:
            found += above
            names |= {group.name for group in above}
        return found

    def access(self, user: str, *, host: str | None = None) -> Access:
        """Return what a user may do; `host` None means from anywhere."""
        groups = [group.name for group in self.groups_of(user)]
        return Access(self._lines_in_force(), user=user, groups=groups, host=host)

    def ticket_lifetime(self, user: str) -> float:
        """Return how long a login lasts: the longest of the user's groups."""
        given = [group.text("Timeout") for group in self.groups_of(user)]
        if "unlimited" in given:
            return 100 * 365 * 86_400.0
        seconds = [float(text) for text in given if text.isdecimal()]
        return max(seconds, default=self.config.ticket_lifetime_seconds)

    def is_super(self, user: str) -> bool:
        return self.access(user).highest_anywhere() == "super"

    def is_admin(self, user: str) -> bool:
        return self.access(user).highest_anywhere() in ("admin", "super")


def _has(names: list[str], wanted: str) -> bool:
    return any(case.same(name, wanted) for name in names)


def database_path(root: Path) -> Path:
    return root / "db.sqlite3"


def _fetch_from(root: Path, digest: str, *, into: Content) -> None:
    """Copy content that is read for the first time (lbr.replication=cache)."""
    database, content = Database(database_path(root)), Content(root)
    try:
        content.fetch = Archives(
            root.resolve(), database=database, content=content
        ).fetch
        into.add(content.read(digest))
    finally:
        database.close()


def open_state(config: PerforceConfig) -> ServerState:
    """Return a new handle on the state below the root."""
    case.ignore_case(config.ignores_case)
    config.root.mkdir(parents=True, exist_ok=True)
    database, content = Database(database_path(config.root)), Content(config.files_root)
    if config.replicates is None:
        archives = Archives(
            config.files_root.resolve(), database=database, content=content
        )
        content.fetch = archives.fetch
    else:
        content.fetch = partial(_fetch_from, config.replicates, into=content)
        if config.follows_and_binds:
            database.numbers = Database(database_path(config.replicates))
    return ServerState(config=config, database=database, content=content)


def initialize(config: PerforceConfig) -> None:
    """Create tables, the first depot and the administrator. Safe to repeat."""
    state = open_state(config)
    try:
        database = state.database
        database.create_tables()
        if find_spec(database, kind="depot", name="depot") is None:
            save_spec(
                database, kind="depot", name="depot", fields=new_depot_fields("depot")
            )
        is_new = find_spec(database, kind="user", name=config.admin_user) is None
        has_password = auth.find_password_hash(database, user=config.admin_user)
        if is_new:
            make_administrator(state)
        elif config.admin_password and has_password is None:
            _set_admin_password(state)
    finally:
        database.close()


def make_administrator(state: ServerState) -> None:
    """Ensure that the administrator exists, is super and has the given password.

    A restored server has neither; its own people and protections stay as they are.
    """
    admin = state.config.admin_user
    ensure_user(state.database, name=admin)
    if state.config.admin_password:
        _set_admin_password(state)
    if not state.is_super(admin):
        lines = [*state.protection_lines(), f"super user {admin} * //..."]
        save_spec(
            state.database,
            kind="protect",
            name="protect",
            fields={"Protections": lines},
        )


def _set_admin_password(state: ServerState) -> None:
    auth.set_password_hash(
        state.database,
        user=state.config.admin_user,
        password_hash=auth.md5(state.config.admin_password),
    )


def new_depot_fields(name: str, *, owner: str = "") -> dict[str, str | list[str]]:
    """Return the form of a new local depot."""
    return {
        "Depot": name,
        **({"Owner": owner} if owner else {}),
        "Date": time.strftime("%Y/%m/%d %H:%M:%S"),
        "Description": f"Created by {owner}.\n" if owner else "Default depot\n",
        "Type": "local",
        "Map": f"{name}/...",
    }


def ensure_user(database: Database, *, name: str, client: str = "localhost") -> None:
    """Create a user who does not exist. Safe to repeat.

    Source: p4 user in the command reference ("Email: by default, this is user@client").
    """
    if find_spec(database, kind="user", name=name) is None:
        save_spec(
            database,
            kind="user",
            name=name,
            fields={
                "User": name,
                "Type": "standard",
                "Email": f"{name}@{client}",
                "FullName": name,
                "AuthMethod": "perforce",
            },
        )


def touch_client(state: ServerState, *, name: str) -> None:
    """Update a client's access date, like every command that names the client."""
    touch_spec(
        state.database,
        kind="client",
        name=name,
        granularity_seconds=state.configurables.number("dm.domain.accessupdate"),
    )
