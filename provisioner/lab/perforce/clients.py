"""Client specs as the rest of the server uses them."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from functools import cached_property, lru_cache

from provisioner.lab.perforce import case, paths
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.specs import Fields
from provisioner.lab.perforce.specstore import StoredSpec, all_specs, find_spec
from provisioner.lab.perforce.streams import stream_view
from provisioner.lab.perforce.views import (
    View,
    ViewLine,
    format_view_line,
    parse_view_line,
)

DEFAULT_OPTIONS = "noallwrite noclobber nocompress unlocked nomodtime normdir"
DEFAULT_SUBMIT_OPTIONS = "submitunchanged"
TYPES = ("writeable", "readonly", "graph", "partitioned", "partitioned-jnl")


@dataclass(frozen=True, kw_only=True)
class Client:
    """A saved client. Paths in client syntax and in the view keep their escapes."""

    name: str
    owner: str
    host: str
    root: str
    alt_roots: tuple[str, ...]
    options: frozenset[str]
    submit_options: str
    line_end: str
    type: str
    server_id: str
    stream: str
    view: View

    @property
    def everything(self) -> str:
        """Return the pattern of all its files in client syntax."""
        return f"//{self.name}/..."

    @cached_property
    def local_root(self) -> str:
        """Return what replaces `//client/` on the client's machine."""
        return "" if self.root == "null" else self.root.rstrip("/") + "/"

    @cached_property
    def cut(self) -> int:
        """Return the length of `//client/`."""
        return len(self.name) + 3

    def local_path(self, client_path: str) -> str:
        """Return the path of a file on the client's machine."""
        relative = client_path[self.cut :]
        return self.local_root + (
            paths.unescape(relative) if "%" in relative else relative
        )

    def local_pattern(self, client_pattern: str) -> str:
        """Return a client pattern over local names, escapes removed."""
        return self.local_path(client_pattern)

    def from_local(self, local: str) -> str:
        """Return an absolute local name (escaped) in client syntax.

        Raises: CommandError if it is not under a root.
        """
        if self.root == "null":
            return f"//{self.name}{local}"
        for root in (self.root, *self.alt_roots):
            base = paths.escape(root.rstrip("/"))
            if case.same(local, base):
                return f"//{self.name}"
            if case.begins(local, base + "/"):
                return f"//{self.name}{local[len(base) :]}"
        raise CommandError(4135, path=paths.unescape(local), root=self.root)

    @property
    def have_table(self) -> str:
        """Return the table of its have list: the common one, or its own."""
        if self.type in ("writeable", "graph"):
            return "db.have"
        return f"db.have.pt/{self.name}"

    def keeps_writable(self, file_type: str) -> bool:
        """Return whether the client refuses to overwrite a writable file.

        Files that are meant to be writable are overwritten.

        Source: p4 help client.
        """
        return "clobber" not in self.options and self.perms(file_type) == "ro"

    @property
    def syncs_safely(self) -> bool:
        """Return whether a sync checks for changed content before it overwrites."""
        return "allwrite" in self.options and "clobber" not in self.options

    def perms(self, file_type: str) -> str:
        """Return the permissions of a synced file."""
        writable = "allwrite" in self.options or "w" in file_type.partition("+")[2]
        return "rw" if writable else "ro"


def find_client(database: Database, *, name: str) -> Client | None:
    spec = find_spec(database, kind="client", name=name)
    if spec is None:
        return None
    return client_of(spec, view=view_lines(database, spec))


def view_lines(database: Database, spec: StoredSpec) -> list[str]:
    """Return a client's view: its own, or the current one of its stream."""
    if not spec.text("Stream"):
        return spec.lines("View")
    return stream_view(database, stream=spec.text("Stream"), client=spec.name)


def client_of(spec: StoredSpec, *, view: list[str]) -> Client:
    """Return the client that a spec describes."""
    return Client(
        name=spec.name,
        owner=spec.text("Owner"),
        host=spec.text("Host"),
        root=_normal_root(spec.text("Root")),
        alt_roots=tuple(spec.lines("AltRoots")),
        options=frozenset(spec.text("Options").split()),
        submit_options=spec.text("SubmitOptions") or DEFAULT_SUBMIT_OPTIONS,
        line_end=spec.text("LineEnd") or "local",
        type=spec.text("Type") or "writeable",
        server_id=spec.text("ServerID"),
        stream=spec.text("Stream"),
        view=compiled_view(tuple(view)),
    )


def _normal_root(root: str) -> str:
    return root if root == "null" else os.path.normpath(root)


@lru_cache(maxsize=256)
def compiled_view(lines: tuple[str, ...]) -> View:
    """Return the view of a form's lines, ignoring invalid ones."""
    parsed = (parse_view_line(line) for line in lines)
    return View([line for line in parsed if line is not None])


def default_view(database: Database, *, client: str) -> list[str]:
    """Return the view of a new client: all local depots."""
    depots = [
        spec.name
        for spec in all_specs(database, kind="depot")
        if spec.text("Type") in ("local", "stream")
    ]
    if len(depots) == 1:
        return [f"//{depots[0]}/... //{client}/..."]
    return [f"//{depot}/... //{client}/{depot}/..." for depot in depots]


def renamed_view(lines: list[str], *, old: str, new: str) -> list[str]:
    """Return view lines with the client's name replaced on the right side."""
    renamed = []
    for text in lines:
        line = parse_view_line(text)
        if line is None:
            continue
        right = line.right
        if right == f"//{old}" or right.startswith(f"//{old}/"):
            right = f"//{new}{right[len(old) + 2 :]}"
        renamed.append(
            format_view_line(ViewLine(flag=line.flag, left=line.left, right=right))
        )
    return renamed


def default_fields(
    database: Database, *, name: str, user: str, host: str, cwd: str
) -> Fields:
    """Return the form of a client that does not exist yet."""
    return {
        "Client": name,
        "Owner": user,
        "Host": host,
        "Description": f"Created by {user}.\n",
        "Root": cwd,
        "Options": DEFAULT_OPTIONS,
        "SubmitOptions": DEFAULT_SUBMIT_OPTIONS,
        "LineEnd": "local",
        "View": default_view(database, client=name),
    }


def check_usable(
    client: Client, *, user: str, host: str, server_id: str, is_edge: bool
) -> None:
    """Refuse a client of another host or server, or one locked by another user.

    Raises: CommandError.
    Source: p4 help client (ServerID: "If unset, usage is allowed on … any replicas of
    the master other than Edge Servers"); inferred: the message.
    """
    if is_edge and not client.server_id:
        raise CommandError(7784, client=client.name)
    if client.server_id not in ("", server_id):
        raise CommandError(6816, client=client.name, serverID=client.server_id)
    if client.host and client.host.lower() != host.lower():
        raise CommandError(6239, client=client.name, host=client.host)
    if "locked" in client.options and not case.same(client.owner, user):
        raise CommandError(6238, client=client.name, user=client.owner)
