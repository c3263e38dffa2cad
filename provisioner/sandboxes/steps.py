"""How a sandbox is made and retired. Each step is safe to repeat.

What is taken: a snapshot of every volume, at one moment where ONTAP has consistency
groups, else in the order database, journal, archives. What is started never was
production: another ServerID, no replication, triggers, external logins or paths of the
original, and a port of its own.

Source: "Backup procedures" and "Replication" of the Helix Core administrator's guide;
"p4d -xD", "p4 help configurables"; consistency groups of the ONTAP REST reference.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from provisioner.catalog.steps.volumes import (
    limits_in_our_words,
    require_online,
    require_ours,
)
from provisioner.engine import workflow
from provisioner.engine.models import Step
from provisioner.engine.queues import OWN
from provisioner.engine.results import StepResult, find_result
from provisioner.engine.step_run import StepRun
from provisioner.gateways import registry
from provisioner.gateways.errors import (
    AlreadyExists,
    Busy,
    GatewayError,
    NotFound,
    Refused,
)
from provisioner.gateways.hosts import ownership
from provisioner.gateways.hosts.p4d import P4d, is_port_free
from provisioner.gateways.ontap.types import (
    CloneSpec,
    ConsistencyGroup,
    Volume,
    VolumeSnapshot,
)
from provisioner.gateways.perforce.releases import is_older, p4d_release_in
from provisioner.gateways.perforce.types import PerforceAccount, ServerInfo
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import (
    Role,
    Sandbox,
    SandboxPlace,
    SandboxVolume,
)
from provisioner.sandboxes.purposes import recipe_of
from provisioner.sites.export_policies import ensure_policy_rules, policies_of

ANSWERS_WITHIN_SECONDS = 60.0
LOOKS_EVERY_SECONDS = 0.3
LONGEST_UPGRADE_SECONDS = 24 * 3600.0
SCRATCH = "cloneyard-dump"
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
# What production's processes left: locks, places in a journal, tickets and the license,
# which is bound to production's address.
_LEFT_BEHIND = (
    *("server.locks", "state", "statejcopy", "statefailover", "rdb.lbr", "license"),
    *(".p4tickets", ".p4trust", ".p4config", "tiny.db", "server.extensions.dir"),
)


# Source: db.depot of the schema: name, type (1: remote), extra, map.
_DEPOT = re.compile(
    rb"^@[pr]v@ \d+ @db\.depot@ @(?P<name>(?:[^@]|@@)*)@ (?P<type>\d+) "
    rb"@(?:[^@]|@@)*@ @(?P<map>(?:[^@]|@@)*)@",
    re.MULTILINE,
)
DEPOT_LEVELS = 3
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
LINKS_NAMED = 5
NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)
_REPLAYED = (Sandbox.Consistency.ORDERED, Sandbox.Consistency.REPLICATED)


class SandboxRun(StepRun):
    """One attempt at a step of a sandbox."""

    @property
    def sandbox(self) -> Sandbox:
        sandbox: Sandbox = self.operation.subject.sandbox
        return sandbox

    @cached_property
    def volumes(self) -> list[SandboxVolume]:
        """Its volumes in the order of snapshots."""
        rows = list(self.sandbox.volumes.prefetch_related("places"))
        for row in rows:
            row.sandbox = self.sandbox
        return rows

    def path_of(self, place: SandboxPlace, volume: SandboxVolume) -> Path:
        """Return where this host sees a part of the copied server."""
        return self.visible_root(volume.junction_path) / place.path

    def p4d(self, *, ignores_case: bool = False) -> P4d:
        """Return the program with the places of this sandbox."""
        paths = {
            place.role: self.path_of(place, volume)
            for volume in self.volumes
            for place in volume.places.all()
        }
        root = paths[Role.DB]
        return replace(
            self.program,
            root=root,
            journal=paths[Role.JOURNAL],
            log=paths.get(Role.LOG, root / "log"),
            ignores_case=ignores_case,
        )

    @cached_property
    def original(self) -> Checked:
        """What the original said of itself when the sandbox was made."""
        if found := self.find_result(Checked):
            return found
        made = self.sandbox.operations.filter(kind=recipe_of(self.sandbox).operation)
        found = find_result(made.latest("pk"), Checked)
        assert found is not None
        return found

    @property
    def program(self) -> P4d:
        return program_of(self.sandbox)


def program_of(sandbox: Sandbox) -> P4d:
    """Return a sandbox's program without places: for what needs none."""
    nowhere = Path("/nonexistent")
    return P4d(
        program=sandbox.p4d_path,
        root=nowhere,
        journal=nowhere,
        log=nowhere,
        uid=sandbox.host.uid,
        gid=sandbox.host.gid,
        tag=str(sandbox.tag),
    )


@dataclass(frozen=True)
class Checked(StepResult):
    """What the original says of itself."""

    step = "server"
    release: str
    server_id: str
    is_case_sensitive: bool


@dataclass(frozen=True)
class Defanged(StepResult):
    """What was switched off, as sentences."""

    step = "defang"
    done: list[str]


# --- checks, before anything is cloned


def ensure_server_fits(run: SandboxRun) -> Checked:
    """Ask the original which release and ServerID it has.

    Raises: StepRefused (p4d older than its database, or its ServerID).
    """
    info = run.perforce.get_info()
    sandbox, server = run.sandbox, run.server
    release = p4d_release_in(info.version)
    if is_older(sandbox.release, release):
        raise StepRefused(
            f"{server.name} runs {release}. A p4d {sandbox.release} cannot read its "
            "database. Nothing was cloned. Choose a newer version.",
            code="p4d_too_old",
        )
    if info.server_id and info.server_id.lower() == sandbox.server_id.lower():
        raise StepRefused(
            f"{server.name} has the ServerID {info.server_id}. Nothing was cloned. "
            "Give the sandbox one of its own.",
            code="server_id_of_a_server",
        )
    return Checked(release, info.server_id, info.is_case_sensitive)


def ensure_host_fits(run: SandboxRun) -> None:
    """Check on the host that p4d is there and that nothing has the port.

    Raises: StepRefused.
    """
    sandbox = run.sandbox
    require_program(run)
    is_ours = bool(run.program.processes())
    if not is_ours and not is_port_free(sandbox.host.address, sandbox.port):
        raise StepRefused(
            f"Something else answers at {sandbox.p4port}. Nothing was cloned. Choose "
            "another port.",
            code="port_in_use",
        )


def require_program(run: SandboxRun) -> None:
    """Check that there is a p4d of the chosen release at its path.

    Raises: StepRefused.
    """
    sandbox = run.sandbox
    with refusing("p4d_missing"):
        found = run.program.release()
    if found != sandbox.release:
        raise StepRefused(
            f"{sandbox.p4d_path} at {sandbox.host.name} is {found}, not "
            f"{sandbox.release}. Nothing was cloned. Correct the path of the version.",
            code="p4d_of_another_release",
        )


@contextlib.contextmanager
def refusing(code: str) -> Iterator[None]:
    """End the step under a code with what is refused in the block."""
    try:
        yield
    except Refused as error:
        raise StepRefused(error.sentence, code=code) from error


# --- the moment that is copied


def ensure_point(run: SandboxRun) -> None:
    """Ensure a snapshot of each volume, and record how consistent they are.

    Of volumes that SnapMirror fills, none is taken: the newest that all have is found.

    Raises: StepRefused (a volume is not there).
    """
    uuids = {row.source: _volume(run, row.source).uuid for row in run.volumes}
    if any(row.is_replica for row in run.volumes):
        _choose_replicated(run, uuids)
        return
    group = _group(run) if len(uuids) > 1 else None
    name, comment = run.sandbox.snapshot_name, run.sandbox.volume_comment
    if group is not None:
        _take_of_group(run, group)
        kind = Sandbox.Consistency.GROUP
    elif len(uuids) == 1:
        kind = Sandbox.Consistency.ONE
    else:
        kind = Sandbox.Consistency.ORDERED
    found: dict[str, VolumeSnapshot] = {}
    for source, uuid in uuids.items():
        snapshot = run.ontap.find_snapshot(uuid, name=name)
        if snapshot is None:
            with limits_in_our_words():
                snapshot = run.ontap.create_snapshot(uuid, name=name, comment=comment)
        found[source] = snapshot
    with run.writing():
        for row in run.volumes:
            SandboxVolume.objects.filter(pk=row.pk).update(
                snapshot_uuid=found[row.source].uuid
            )
        Sandbox.with_retired.filter(pk=run.sandbox.pk).update(
            consistency=kind,
            taken_at=found[run.volumes[0].source].created_at or clocks.database_now(),
        )


def _choose_replicated(run: SandboxRun, uuids: dict[str, str]) -> None:
    """Choose the newest snapshots that came to all volumes under one name.

    Once chosen they stay chosen, so that a retry clones the same moment.

    Raises: StepRefused (no such snapshots).
    """
    snapshots = {
        source: {each.name: each for each in run.ontap.list_snapshots(uuid)}
        for source, uuid in uuids.items()
    }
    names = set.intersection(*(set(found) for found in snapshots.values()))
    names = {row.replicated for row in run.volumes} & names or names
    moments = {
        name: min(found[name].created_at or NEVER for found in snapshots.values())
        for name in names
    }
    if not moments:
        raise StepRefused(
            f"{', '.join(uuids)} have no snapshot of one name, so no moment is in all "
            "of them. Nothing was cloned. Take the snapshots of the server's volumes "
            "as a consistency group, or by one snapshot policy, and replicate them.",
            code="replicas_apart",
        )
    newest = max(moments, key=lambda name: (moments[name], name))
    is_one = len(uuids) == 1
    kinds = Sandbox.Consistency
    with run.writing():
        for row in run.volumes:
            SandboxVolume.objects.filter(pk=row.pk).update(
                replicated=newest, snapshot_uuid=snapshots[row.source][newest].uuid
            )
        Sandbox.with_retired.filter(pk=run.sandbox.pk).update(
            consistency=kinds.ONE if is_one else kinds.REPLICATED,
            taken_at=moments[newest],
        )


def _volume(run: SandboxRun, name: str) -> Volume:
    volume = run.ontap.find_volume(name)
    if volume is None:
        raise StepRefused(
            f"There is no volume {name} on {run.site.svm}. Nothing was cloned. Correct "
            f"the volumes of {run.server.name}.",
            code="volume_missing",
        )
    return volume


def _group(run: SandboxRun) -> ConsistencyGroup | None:
    """Return the group that has just these volumes, or a new one.

    None where ONTAP has no groups, our account may not use them, or somebody else's
    group has some of the volumes.
    """
    wanted = [row.source for row in run.volumes]
    try:
        groups = run.ontap.list_groups()
        for group in groups:
            if set(wanted) <= set(group.volumes):
                return group
        if any(set(wanted) & set(group.volumes) for group in groups):
            return None
        return run.ontap.create_group(run.sandbox.group_name, volumes=wanted)
    except (NotFound, Refused, AlreadyExists):
        return None


def _take_of_group(run: SandboxRun, group: ConsistencyGroup) -> None:
    name = run.sandbox.snapshot_name
    if run.ontap.find_group_snapshot(group.uuid, name=name) is None:
        with limits_in_our_words():
            run.ontap.create_group_snapshot(
                group.uuid, name=name, comment=run.sandbox.volume_comment
            )


# --- clones


def ensure_clones(run: SandboxRun) -> None:
    """Ensure a FlexClone of each volume with our tag.

    Raises: StepRefused (another volume has the name, no room).
    """
    sandbox, host = run.sandbox, run.sandbox.host
    is_of_ontap = run.site.reown == run.site.Reown.ONTAP
    for row in run.volumes:
        spec = CloneSpec(
            name=row.clone_name,
            parent_volume=row.source,
            parent_snapshot=row.replicated or sandbox.snapshot_name,
            comment=sandbox.volume_comment,
            uid=host.uid if is_of_ontap else None,
            gid=host.gid if is_of_ontap else None,
        )
        volume = _ensure_clone(run, spec)
        with run.writing():
            SandboxVolume.objects.filter(pk=row.pk).update(clone_uuid=volume.uuid)


def _ensure_clone(run: SandboxRun, spec: CloneSpec) -> Volume:
    volume = run.ontap.find_volume(spec.name)
    if volume is None:
        try:
            with limits_in_our_words():
                volume = run.ontap.create_clone(spec)
        except AlreadyExists:
            volume = run.ontap.find_volume(spec.name)
            if volume is None:
                raise
    require_ours(volume, comment=spec.comment)
    require_online(volume)
    return volume


def ensure_mounted(run: SandboxRun) -> None:
    """Mount the clones where only workers may mount them."""
    site = run.site
    policy = site.templates_policy
    ensure_policy_rules(run.ontap, policy, rules=policies_of(site)[policy])
    for row in run.volumes:
        volume = run.ontap.get_volume(row.clone_uuid)
        if (volume.export_policy, volume.snapshot_policy) != (policy, "none"):
            run.ontap.set_volume_policies(
                row.clone_uuid,
                export_policy=policy,
                root_mode="750",
                shows_snapshots=False,
            )
        if volume.junction_path != row.junction_path:
            run.ontap.mount_volume(row.clone_uuid, junction_path=row.junction_path)


def ensure_owned(run: SandboxRun) -> None:
    """Give every file of the clones to the user who runs the sandbox's server.

    Without root they have to be that user's already.

    Raises: StepRefused.
    """
    host = run.sandbox.host
    for row in run.volumes:
        root = run.visible_root(row.junction_path)
        if os.geteuid() == 0:
            report = ownership.change_ownership(root, uid=host.uid, gid=host.gid)
            if report.failures:
                raise StepRefused(run.keep_failures(report), code="files_not_owned")
        elif root.stat().st_uid != os.geteuid():
            raise StepRefused(
                f"The worker at {host.name} does not run as root, so it cannot give "
                f"{root} to uid {host.uid}.",
                code="files_not_owned",
            )


# --- what makes it another server


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


def require_within(run: SandboxRun, p4d: P4d) -> None:
    """Refuse links out of the clones, before anything is written or removed by them.

    Of the archives only the upper directories are looked through: there may be
    millions below.

    Raises: StepRefused.
    """
    clones = [run.visible_root(volume.junction_path) for volume in run.volumes]
    depots = _depot_root(run)
    looked_through = [(p4d.root, 1), (depots, DEPOT_LEVELS)]
    looked_through += [(file, 0) for file in (p4d.journal, p4d.log)]
    left = [
        str(directory / link)
        for directory, deep in looked_through
        for link in p4d.links_out(directory, within=clones, deep=deep)
        if directory != p4d.root or link not in _LEFT_BEHIND
    ]
    if left:
        raise StepRefused(
            f"Links lead out of the clones: {', '.join(left[:LINKS_NAMED])}. A sandbox "
            "would follow them, perhaps to the original. Nothing was started. Describe "
            "the volume that they lead to, or replace them in the original.",
            code="links_lead_out",
        )


def require_depots_within(p4d: P4d) -> None:
    """Refuse a depot whose files are at a path of the original.

    A relative Map is below server.depot.root; a remote depot has none here.

    Raises: StepRefused.
    """
    found = _DEPOT.finditer(p4d.dump("db.depot", scratch=SCRATCH))
    outside = [
        each["name"].decode(errors="replace")
        for each in found
        if each["type"] != b"1"
        and (each["map"].startswith(b"/") or b".." in each["map"].split(b"/"))
    ]
    if outside:
        raise StepRefused(
            f"The Map of {', '.join(outside[:LINKS_NAMED])} is not below "
            "server.depot.root. A sandbox would write to the original's archives. "
            "Nothing was started. Give these depots a relative Map.",
            code="depot_maps_lead_out",
        )


def require_unknown(p4d: P4d, server_id: str) -> None:
    """Refuse a ServerID that a server specification of the copy has.

    Raises: StepRefused.
    """
    specs = p4d.dump("db.server", scratch=SCRATCH).lower()
    if b"@%s@" % server_id.lower().encode() in specs:
        raise StepRefused(
            f"The original has a server specification {server_id}. Nothing was "
            "started. Give the sandbox a ServerID of its own.",
            code="server_id_of_a_server",
        )


def _is_fang(name: str) -> bool:
    return _DEFANGED.fullmatch(name) is not None


def _defanged(run: SandboxRun, p4d: P4d) -> Iterator[str]:
    """Switch off, and yield what was."""
    for name in p4d.remove(*_LEFT_BEHIND):
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
    p4d.set(_DEPOT_ROOT, str(_depot_root(run)))
    p4d.give_id(run.sandbox.server_id)
    original = run.result_of(Checked).server_id or "none"
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


def _depot_root(run: SandboxRun) -> Path:
    for volume in run.volumes:
        for place in volume.places.all():
            if place.role == Role.DEPOT:
                return run.path_of(place, volume)
    raise AssertionError("a described server has archives")


# --- the server


def ensure_started(run: SandboxRun) -> None:
    """Ensure that the chosen p4d serves the copy, as the host's user.

    Raises: StepRefused in its own words.
    """
    sandbox = run.sandbox
    p4d = run.p4d(ignores_case=not run.original.is_case_sensitive)
    if p4d.processes():
        if _answer(run) is not None:
            return
        p4d.stop()
    if sandbox.release != run.original.release:
        _upgrade(run, p4d)
    with refusing("p4d_did_not_start"):
        p4d.start(sandbox.p4port)


def _upgrade(run: SandboxRun, p4d: P4d) -> None:
    """Upgrade the database, and record how long that took.

    One that is repeated goes on where it was interrupted, so its time would be wrong.
    """
    rows = Sandbox.with_retired.filter(pk=run.sandbox.pk)
    with run.writing():
        is_first = rows.filter(upgraded_from="").update(
            upgraded_from=run.original.release
        )
    began = time.monotonic()
    with refusing("upgrade_failed"):
        p4d.upgrade(within_seconds=LONGEST_UPGRADE_SECONDS)
    if is_first:
        with run.writing():
            rows.update(upgrade_seconds=time.monotonic() - began)


def ensure_answers(run: SandboxRun) -> None:
    """Wait for `p4 info`, and check that it is the sandbox that answers.

    Raises: StepRefused, Busy (not within a minute).
    """
    ends = time.monotonic() + ANSWERS_WITHIN_SECONDS
    while (info := _answer(run)) is None:
        if not run.program.processes():
            raise StepRefused(
                "The sandbox's server ended by itself. Its log says why.",
                code="p4d_ended",
            )
        if time.monotonic() > ends:
            raise Busy(
                f"Nothing answers at {run.sandbox.p4port} yet.",
                system="perforce",
                operation="info",
            )
        time.sleep(LOOKS_EVERY_SECONDS)
    if info.server_id != run.sandbox.server_id or info.replica_of:
        run.program.stop()
        raise StepRefused(
            f"What answers at {run.sandbox.p4port} is {info.server_id or 'nameless'}, "
            "not the sandbox. It was stopped.",
            code="another_server_answers",
        )


def _answer(run: SandboxRun) -> ServerInfo | None:
    """Return what the sandbox's server says, None if it does not answer yet.

    No password is sent: `p4 info` needs none.
    """
    account = replace(account_at(run), password="")
    with contextlib.suppress(GatewayError):
        return registry.perforce_as(account).get_info()
    return None


def account_at(run: SandboxRun) -> PerforceAccount:
    """Return our account at the original as one at the sandbox's server."""
    account = registry.perforce_account(run.server)
    return replace(account, port=run.sandbox.p4port, fingerprint="")


# --- the end


def ensure_stopped(run: SandboxRun) -> None:
    """End the sandbox's processes, and unmount its clones on this host.

    What its recipe has left half done is removed.
    """
    run.program.stop()
    recipe_of(run.sandbox).clear(run.sandbox)
    for row in run.volumes:
        run.leave_root(row.junction_path)


def ensure_quiet_elsewhere(run: SandboxRun) -> None:
    """Ensure that no step of an earlier operation runs, but for the lost host's.

    What was begun there can write down nothing any more.

    Raises: Busy.
    """
    at_work = Step.objects.filter(
        operation__subject=run.operation.subject, state=Step.State.RUNNING
    ).exclude(operation=run.operation)
    names = ", ".join(
        step.name
        for step in at_work.select_related("operation__subject")
        if workflow.spec_of(step).queue != OWN
    )
    if names:
        raise Busy(
            f"An earlier operation is still running on it: {names}.",
            system="cloneyard",
            operation=run.operation.kind,
        )


def ensure_destroyed(run: SandboxRun) -> None:
    """Destroy the clones. One that is gone, or never was, is success."""
    for row in run.volumes:
        volume = run.ontap.find_volume(row.clone_name)
        if volume is not None and run.sandbox.is_tagged(volume.comment):
            run.ontap.unmount_volume(volume.uuid)
            run.ontap.delete_volume(volume.uuid, force=True)


def ensure_released(run: SandboxRun) -> None:
    """Delete the snapshots of the original's volumes, and our group with the last."""
    name = run.sandbox.snapshot_name
    groups = _groups_known(run)
    for group in groups:
        uuid = run.ontap.find_group_snapshot(group.uuid, name=name)
        if uuid is not None:
            run.ontap.delete_group_snapshot(group.uuid, snapshot_uuid=uuid)
    for row in run.volumes:
        volume = run.ontap.find_volume(row.source)
        if volume is None:
            continue
        snapshot = run.ontap.find_snapshot(volume.uuid, name=name)
        if snapshot is not None:
            run.ontap.delete_snapshot(volume.uuid, snapshot_uuid=snapshot.uuid)
    others = Sandbox.objects.filter(perforce_server=run.server).exclude(
        pk=run.sandbox.pk
    )
    if not others.exists():
        for group in groups:
            if group.name == run.sandbox.group_name:
                run.ontap.delete_group(group.uuid)


def _groups_known(run: SandboxRun) -> list[ConsistencyGroup]:
    """Return the groups that have volumes of the original; [] without groups."""
    sources = {row.source for row in run.volumes}
    with contextlib.suppress(NotFound, Refused):
        return [g for g in run.ontap.list_groups() if sources & set(g.volumes)]
    return []


def ensure_nothing_left(run: SandboxRun) -> None:
    """Prove on the host and at ONTAP that nothing of the sandbox is left.

    Raises: StepRefused.
    """
    left = [f"process {number}" for number in run.program.processes()]
    left += recipe_of(run.sandbox).left(run.sandbox)
    _require_none_left(left + _at_ontap(run))


def ensure_nothing_left_at_ontap(run: SandboxRun) -> None:
    """Prove at ONTAP alone that nothing of the sandbox is left.

    Raises: StepRefused.
    """
    _require_none_left(_at_ontap(run))


def _at_ontap(run: SandboxRun) -> list[str]:
    sandbox, left = run.sandbox, []
    clones = run.ontap.list_volumes(comment_prefix=sandbox.volume_comment)
    left += [f"volume {volume.name}" for volume in clones]
    for row in run.volumes:
        volume = run.ontap.find_volume(row.source)
        if volume is not None and run.ontap.find_snapshot(
            volume.uuid, name=sandbox.snapshot_name
        ):
            left.append(f"snapshot {sandbox.snapshot_name} of {row.source}")
    return left


def _require_none_left(left: list[str]) -> None:
    if left:
        raise StepRefused(
            f"Something of the sandbox is left: {', '.join(left)}. Retire it again.",
            code="sandbox_left",
        )
