"""p4 client -d: its conditions, and the deletion.

Source: p4 help client; the texts of the server's message table.
"""

# ruff: noqa: S608 - statements are composed of our own constants; values are bound
from __future__ import annotations

from provisioner.lab.perforce import clients as client_specs
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.replication import publish_client
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import StoredSpec, delete_spec, find_spec


def delete_client(request: Request, *, usage: str) -> None:
    """Delete a client with its have list; files and submitted changes stay.

    With `-f` its opened files and pending changes are deleted as well; `-Fs` keeps
    changes that have a shelf, `-Fd` deletes the shelves.

    Raises: CommandError.
    """
    if not request.args or (request.has("F") and not request.has("f")):
        raise CommandError(7198, usage=usage)
    if request.options.get("F", "s") not in ("s", "d"):
        raise CommandError(7198, usage=usage)
    name = request.args[0]
    spec = find_spec(request.state.database, kind="client", name=name)
    if spec is None:
        raise CommandError(6178, type="Client", name=name)
    _check_may_delete(request, spec)
    _check_server(request, spec, usage=usage)
    _check_is_idle(request, spec)
    _forget(request, spec)
    if request.state.config.follows_and_binds:
        publish_client(request.state, name=name)
    request.say(6372, domainType="Client", domainName=name)


def _check_may_delete(request: Request, spec: StoredSpec) -> None:
    """Refuse a locked client even to its owner, and force without the right to it."""
    if request.has("f"):
        if not request.state.is_admin(request.user):
            raise CommandError(6185)
    elif "locked" in spec.text("Options").split():
        raise CommandError(6214, type="Client", name=spec.name)


def _check_server(request: Request, spec: StoredSpec, *, usage: str) -> None:
    """Refuse the client of another server unless that server is named (-f)."""
    here, bound = request.state.config.server_id, spec.text("ServerID")
    named = request.options.get("serverid")
    if named is not None:
        # Source: p4 help client ("must be issued directly to the Commit Server");
        # inferred: the message.
        if request.state.config.replicates is not None:
            raise CommandError(7588)
        if not request.has("f"):
            raise CommandError(7198, usage=usage)
        if named != bound:
            raise CommandError(
                6906, objectType="Client", objectName=spec.name, serverID=named
            )
    elif bound not in ("", here):
        raise CommandError(
            6905,
            objectType="Client",
            objectName=spec.name,
            domainServerID=bound,
            serverID=here,
        )


def _check_is_idle(request: Request, spec: StoredSpec) -> None:
    """Refuse a client that holds somebody's work."""
    database = request.state.database

    def has(query: str) -> bool:
        return database.execute(query, spec.name).fetchone() is not None

    is_forced = request.has("f")
    if not is_forced and has("SELECT 1 FROM opened WHERE client=?"):
        raise CommandError(6215, client=spec.name)
    if not request.has("F") and has(
        "SELECT 1 FROM shelved JOIN changes USING (change) WHERE client=?"
    ):
        raise CommandError(6668, client=spec.name)
    if not is_forced and has(
        "SELECT 1 FROM changes WHERE client=? AND status='pending'"
    ):
        raise CommandError(6591, client=spec.name)


def _forget(request: Request, spec: StoredSpec) -> None:
    database = request.state.database
    have_table = client_specs.client_of(spec, view=[]).have_table
    locks = request.locks.writing({"db.domain": 1, "db.view": 1, have_table: 0})
    with locks, database.writing():
        delete_spec(database, kind="client", name=spec.name)
        for table in ("have", "opened", "resolves"):
            database.execute(f"DELETE FROM {table} WHERE client=?", spec.name)
        if request.options.get("F") == "d":
            for table in ("shelved", "shelved_origins"):
                database.execute(
                    f"DELETE FROM {table} WHERE change IN"
                    " (SELECT change FROM changes WHERE client=?)",
                    spec.name,
                )
        database.execute(
            "DELETE FROM changes WHERE client=? AND status='pending' AND change"
            " NOT IN (SELECT change FROM shelved)",
            spec.name,
        )
