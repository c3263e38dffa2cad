"""Why something about sandboxes is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class ServerNotDescribed(ActionRefused):
    """The volumes of {server} are not described yet. Ask an administrator to
    describe them."""

    code = "server_not_described"


class VolumeListIncomplete(ActionRefused):
    """The list names no {missing}. Without it the copy would not be a whole server."""

    code = "volume_list_incomplete"
    http_status = 400
    field = "places"


class PlanIncomplete(ActionRefused):
    """The plan of {server} has no host or no version of p4d. Choose them."""

    code = "plan_incomplete"


class PlanRunning(ActionRefused):
    """The sandbox {name} of {server} is made for this just now. Wait for its end."""

    code = "plan_running"


class NoSandboxesForYou(ActionRefused):
    """Your team is not allowed to have sandboxes. An administrator can allow it."""

    code = "no_sandboxes"
    http_status = 403


class TooManySandboxes(ActionRefused):
    """You have {number} sandboxes, and may have {most}. Retire one first."""

    code = "too_many_sandboxes"


class TeamHasTooManySandboxes(ActionRefused):
    """The people of {team} have {number} sandboxes, and may have {most}. Retire one
    first."""

    code = "team_has_too_many_sandboxes"


class LeaseTooLong(ActionRefused):
    """You may have a sandbox for {most} hours at most."""

    code = "sandbox_lease_too_long"
    field = "hours"


class SandboxHostFull(ActionRefused):
    """The host {host} has its {most} sandboxes. Retire one, or choose another host."""

    code = "sandbox_host_full"
    field = "host"


class HostElsewhere(ActionRefused):
    """The host {host} is at {site}, and the volumes of {server} are at {home}."""

    code = "sandbox_host_elsewhere"
    field = "host"


class PortOfAServer(ActionRefused):
    """{server} answers at {port}. A sandbox needs a port of its own."""

    code = "port_of_a_server"
    field = "port"


class PortTaken(ActionRefused):
    """The sandbox {name} has port {port} at {host}. Leave it empty for the next free
    one."""

    code = "port_taken"
    field = "port"


class ServerIdOfAServer(ActionRefused):
    """{server} has the ServerID {server_id}. A sandbox needs one of its own."""

    code = "server_id_of_a_server"
    field = "server_id"


class P4dTooOld(ActionRefused):
    """{server} runs {newer}. A p4d {older} cannot read its database."""

    code = "p4d_too_old"
    field = "version"


class SandboxNameTaken(ActionRefused):
    """There is a sandbox named {name}. Choose another name."""

    code = "sandbox_name_taken"
    field = "name"


class SandboxMoving(ActionRefused):
    """The sandbox {name} is {state}. Wait until that has ended."""

    code = "sandbox_moving"


class SandboxHostAnswers(ActionRefused):
    """A worker serves {host}. Retire the sandbox with it, so that nothing is left."""

    code = "sandbox_host_answers"


class SandboxInUse(ActionRefused):
    """Sandboxes use {what}: {names}. Retire them first."""

    code = "sandbox_in_use"


class SandboxHostInHistory(ActionRefused):
    """Retired sandboxes ran on {host}, and their pages name it. It cannot be deleted.
    Stop its worker."""

    code = "sandbox_host_in_history"
