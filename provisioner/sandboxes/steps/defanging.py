"""What makes a copy another server, before it is first started.

What is started never was production: another ServerID, no replication, triggers,
external logins or paths of the original, and a port of its own.

Source: "Replication" of the Helix Core administrator's guide; "p4d -xD", "p4 help
configurables".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.engine.results import StepResult
from provisioner.gateways.hosts.p4d import P4d
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.steps.containing import (
    LEFT_BEHIND,
    SCRATCH,
    depot_root,
    require_depots_within,
    require_unknown,
    require_within,
)
from provisioner.sandboxes.steps.run import Checked, SandboxRun, refusing

# What makes a copy act as the original: whom it follows, what it starts by itself,
# where it writes, and who says who somebody is. Sandboxes have their own paths.
_DEFANGED = re.compile(
    r"P4[A-Z]+|serviceUser|"
    r"startup\.\d+|(db|lbr)\.replication|rpl\..+|pull\..+|auth\..+|"
    r"journalPrefix|serverlog\..+|rt\.monitorfile|client\.(readonly|sendq)\.dir|"
    r"server\.locks\.dir|server\.depot\.root|server\.extensions\..+|"
    # p4 push from a sandbox would reach the original.
    r"server\.allow(push|fetch|rewrite|remotelocking)|"
    r"net\.mimcheck",
    re.IGNORECASE,
)
_DEPOT_ROOT = "server.depot.root"
GUARDS = (
    (
        "security",
        "4",
        "users without a password, and the user “remote”, are not let in.",
    ),
    (
        "dm.user.setinitialpasswd",
        "0",
        "only a super user with a password gives one to users who have none.",
    ),
    ("dm.user.noautocreate", "2", "nobody becomes a user by a first command."),
)
_REPLAYED = (Sandbox.Consistency.ORDERED, Sandbox.Consistency.REPLICATED)


@dataclass(frozen=True)
class Defanged(StepResult):
    """What was switched off, as sentences."""

    step = "defang"
    done: list[str]


def ensure_defanged(run: SandboxRun) -> Defanged:
    """Ensure that the copy cannot act as the original, before it is first started.

    Raises: StepRefused (something is still set, or the journal cannot be replayed).
    """
    sandbox = run.sandbox
    if found := run.find_result(Defanged):
        return found
    checked = run.result_of(Checked)
    p4d = run.p4d(ignores_case=not checked.is_case_sensitive)
    p4d.stop()
    require_within(run, p4d)
    done = list(_defanged(run, p4d))
    left = [
        each.full_name
        for each in p4d.settings()
        if _is_fang(each.name) and each.name != _DEPOT_ROOT
    ]
    if left:
        raise StepRefused(
            f"{', '.join(left)} could not be switched off. Nothing was started.",
            code="not_defanged",
        )
    with run.writing():
        Sandbox.with_retired.filter(pk=sandbox.pk).update(defanged=done)
    return Defanged(done)


def _is_fang(name: str) -> bool:
    return _DEFANGED.fullmatch(name) is not None


def _defanged(run: SandboxRun, p4d: P4d) -> Iterator[str]:
    """Switch off, and yield what was."""
    for name in p4d.remove(*LEFT_BEHIND):
        if name == "license":
            yield (
                "The license stayed behind: it is bound to the original's address. "
                "Without one, five users and twenty workspaces may be used."
            )
        elif name == "server.extensions.dir":
            yield "Removed the code of server extensions, so none of them can run."
        else:
            yield f"Removed {name}."
    # A step before, in the same job, has written it.
    run.sandbox.refresh_from_db(fields=["consistency"])
    if run.sandbox.consistency in _REPLAYED:
        with refusing("journal_not_replayed"):
            p4d.replay(p4d.journal)
        yield "Replayed the journal, which can be a moment younger than the database."
    require_depots_within(p4d)
    require_unknown(p4d, run.sandbox.server_id)
    for setting in p4d.settings():
        if _is_fang(setting.name):
            p4d.unset(setting)
            yield f"Unset {setting.name}, which was {setting.value or 'empty'}."
    if triggers := p4d.remove_rows("db.trigger", scratch=SCRATCH):
        number = "the trigger" if triggers == 1 else f"{triggers} triggers"
        yield f"Removed {number}, and with that mail and external logins."
    yield from _guarded(p4d)
    p4d.set(_DEPOT_ROOT, str(depot_root(run)))
    p4d.give_id(run.sandbox.server_id)
    original = run.result_of(Checked).server_id or "none that is known"
    yield (
        f"The ServerID is {run.sandbox.server_id}; the original's is {original}. "
        "No specification says more of it, so it is a standard server."
    )


def _guarded(p4d: P4d) -> Iterator[str]:
    """Let nobody in without a password of the database, and yield what was set.

    Who had none was known to LDAP or to a trigger, which are switched off.

    Source: "Server security levels" and "Configurables for security" of the P4 Server
    administrator's guide; the release notes of 2025.1 on the user `remote`.
    """
    stored = {each.name: each.value for each in p4d.settings() if each.server == "any"}
    for name, wanted, said in GUARDS:
        value = stored.get(name, "")
        if value == wanted or (name == "security" and value > wanted):
            continue
        p4d.set(name, wanted)
        yield f"Set {name}={wanted}: {said}"
