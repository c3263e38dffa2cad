"""What a server of each kind accepts.

A replica has the data of the server it replicates from, and may be behind. One that
replicates from none is never behind, and does itself what others forward.

Source: p4 help server, replication, buildserver, forwardingreplica; the categories of
commands in the administrator's guide.
"""

from __future__ import annotations

from provisioner.lab.perforce.clients import find_client
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request

KINDS = (
    *("standard", "commit-server", "edge-server"),
    *("forwarding-replica", "forwarding-standby"),
    *("replica", "standby", "build-server"),
)
_READ_ONLY = frozenset({"replica", "standby", "build-server"})
_FORWARDING = frozenset({"forwarding-replica", "forwarding-standby"})

_REPORTS = frozenset(
    {
        *("annotate", "branches", "changes", "changelists", "clients", "counters"),
        *("depots", "describe", "diff", "diff2", "dirs", "filelog", "files", "fixes"),
        *("fstat", "grep", "groups", "have", "help", "info", "integrated", "jobs"),
        *(
            "labels",
            "lockstat",
            "login",
            "logout",
            "monitor",
            "opened",
            "print",
            "protects",
        ),
        *("resolved", "sizes", "status", "streams", "transmit", "users", "verify"),
        *("where", "workspaces"),
    }
)
_FORMS = frozenset(
    {
        *("branch", "change", "changelist", "client", "depot", "group", "job"),
        *("label", "ldap", "protect", "remote", "repo", "server", "spec", "stream"),
        *("triggers", "typemap", "user", "workspace"),
    }
)
# Of forms, what stays at an edge: clients bound to it, and their pending changes.
_OF_CLIENTS = frozenset({"client", "workspace", "change", "changelist"})
# Source: p4 help distributed ("forwarded to the Commit Server for processing").
_AT_COMMIT_SERVER = frozenset({"counter", "passwd", "populate"})
# Each server has its own tickets, settings and processes.
_OF_EACH_SERVER = frozenset(
    {"login", "logout", "configure", "monitor", "lockstat", "info"}
)
_SYNCS = frozenset({"sync", "flush", "update"})
_OF_BUILD_SERVERS = _SYNCS | {"client", "workspace"}
# With -n, and a sync with -p, they change nothing that the server keeps.
_PREVIEWED = _SYNCS | {"reconcile", "clean"}


def server_of_clients(request: Request) -> str:
    """Return the ServerID that a saved client gets if its form has none; "" for none.

    Source: "Bind workspaces to the build server" of the administrator's guide.
    """
    config = request.state.config
    return config.server_id if config.binds_clients else ""


def is_forwarded(request: Request) -> bool:
    """Return whether the server that it follows runs the command.

    Source: the categories of commands in the administrator's guide ("global update",
    "work in progress").
    """
    config, command = request.state.config, request.command
    if config.replicates is None or command in _OF_EACH_SERVER or _only_reads(request):
        return False
    if config.services in _FORWARDING:
        return True
    is_global = command in _FORMS - _OF_CLIENTS or command in _AT_COMMIT_SERVER
    return config.services == "edge-server" and is_global


def check_kind(request: Request) -> None:
    """Refuse a command that a server of this kind does not accept.

    Raises: CommandError.
    """
    services = request.state.config.services
    is_edge = services == "edge-server" and request.state.config.replicates is not None
    if is_edge and request.command in ("submit", "label", "labelsync", "tag"):
        raise NotInLab(f"p4 {request.command} at an edge server")
    if services not in _READ_ONLY or _only_reads(request):
        return
    if services != "build-server" or request.command not in _OF_BUILD_SERVERS:
        raise CommandError(7588)
    check_bound(request, request.client_name)


def check_bound(request: Request, name: str) -> None:
    """Refuse a client that exists and is not the build server's own.

    Raises: CommandError.
    """
    config = request.state.config
    if config.services != "build-server":
        return
    client = find_client(request.state.database, name=name)
    if client and client.server_id != config.server_id:
        raise CommandError(7784, client=name)


def _only_reads(request: Request) -> bool:
    command, arguments = request.command, request.args
    if command in _PREVIEWED:
        return request.has("n") or (command in _SYNCS and request.has("p"))
    if command == "configure":
        return arguments[:1] == ["show"]
    if command == "counter":
        return len(arguments) == 1 and not request.has("d")
    return command in _REPORTS or (command in _FORMS and request.has("o"))
