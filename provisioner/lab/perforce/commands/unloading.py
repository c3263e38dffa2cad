"""p4 unload and reload of clients, with their have lists.

An unloaded client is a spec of a kind of its own; its have list is kept under its name.
"""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.holdings import opened_by
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import StoredSpec, all_specs, find_spec


def unload(request: Request) -> None:
    """Answer `p4 unload -c`."""
    database = request.state.database
    name = _name(request)
    depots = all_specs(database, kind="depot")
    if not any(depot.text("Type") == "unload" for depot in depots):
        raise CommandError(6851)
    spec = find_spec(database, kind="client", name=name)
    if spec is None:
        raise CommandError(6178, type="Client", name=name)
    _check_owner(request, spec, refusal=6852)
    if spec.text("Type") in ("readonly", "partitioned", "partitioned-jnl"):
        raise CommandError(7998, domainName=name)
    if "locked" in spec.text("Options").split() and not request.has("L"):
        raise CommandError(6212, type="client", name=name, user=spec.text("Owner"))
    if opened_by(database, client=name):
        raise CommandError(6215, client=name)
    _move(request, spec, kind="unloaded")
    request.say(6859, object="Client", name=name)


def reload(request: Request) -> None:
    """Answer `p4 reload -c`."""
    name = _name(request)
    spec = find_spec(request.state.database, kind="unloaded", name=name)
    if spec is None:
        if find_spec(request.state.database, kind="client", name=name):
            raise CommandError(6848, domain=name)
        raise CommandError(6178, type="Client", name=name)
    _check_owner(request, spec, refusal=6853)
    _move(request, spec, kind="client")
    request.say(6860, object="Client", name=name)


def _name(request: Request) -> str:
    if not request.has("c"):
        raise CommandError(7198, usage=f"{request.command} [-f] -c client")
    return request.options["c"]


def _check_owner(request: Request, spec: StoredSpec, *, refusal: int) -> None:
    is_forced = request.has("f") and request.state.is_admin(request.user)
    if spec.text("Owner") != request.user and not is_forced:
        raise CommandError(refusal, domainName=spec.name)


def _move(request: Request, spec: StoredSpec, *, kind: str) -> None:
    database = request.state.database
    locks = request.locks.writing({"db.domain": 1, "db.have": 0})
    with locks, database.writing():
        database.execute(
            "UPDATE specs SET kind=? WHERE kind=? AND name=?",
            *(kind, spec.kind, spec.name),
        )


COMMANDS = (
    Command(
        names=("unload",),
        most_arguments=0,
        run=unload,
        usage="unload [-f -L -z] -c client",
        flags="fLz",
        valued="c",
        absent="palsdu",
    ),
    Command(
        names=("reload",),
        most_arguments=0,
        run=reload,
        usage="reload [-f] -c client",
        flags="f",
        valued="c",
        absent="lsp",
    ),
)
