"""Every table is bounded by its subjects, shortened by its feature, or has a rule."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db.models import Model

from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.notify.models import Notification
from provisioner.retention.rules import RULES
from provisioner.routing.models import TrafficDay

# Rows of what people, servers and configuration have: few of each, and they go with it,
# or are written over.
BOUNDED = {
    "accounts": "Team TokenUse User User_groups User_user_permissions",
    "auth": "Group Group_permissions Permission",
    "catalog": "PinnedTemplate RefreshPolicy RefreshSwitch ServerWatch Template "
    "TemplateCheck TemplateWatch VolumePolicy",
    "contenttypes": "ContentType",
    "copies": "CopyRule",
    "directory": "DirectoryChange",
    "drift": "DriftCheck",
    "drills": "DrillPlan DrillVolume",
    "efficiency": "DedupePlan DedupeVolume",
    "engine": "KnownTimeline ServerLoad SlotBudget Subject",
    "identities": "Identity",
    "insight": "AdviceRule ClientListing ListedClient OrphanRule Process "
    "ProcessReading ProgramLogReading ProgramRelease ServerConfiguration "
    "ServerFilesystem ServerSetting",
    "leases": "LeasePolicy",
    "maintenance": "Maintenance",
    "moves": "TemplatePlace",
    "notify": "NotificationChoice Subscription Webhook",
    "pools": "Pool",
    "probes": "Moment ProbePlan ProbeTime",
    "procrastinate": "ProcrastinateWorker ProcrastinatePeriodicDefer "
    "ProcrastinateEvent",
    "recipes": "CheckpointPlan VerificationPlan",
    "routing": "RoutingRule",
    "sandboxes": "P4dVersion SandboxHost SandboxPolicy ServerVolume ServerVolumes",
    "server_log": "LogFile LogUpload ServerLog",
    "sites": "AggregateSpace Ceiling ConnectionCheck ConnectionTest HomeSite "
    "PerforceServer ReplicaPosition ServerAbilities Site SiteCapacity",
    "storage": "FillingVolume SnapshotSize SplitPolicy",
    "web": "SavedView",
    "workspace_snapshots": "SnapshotPolicy",
    "workspaces": "Share",
}
# A row or a few for each workspace, mirror, bisection, sandbox and run that there ever
# was: what the audit log names. docs/scale.md says how many that are.
HISTORY = {
    "bisect": "Bisection BisectionChange BisectionStep",
    "cloning": "WorkspaceClone",
    "copies": "CopiedSnapshot WorkspaceCopy",
    "drills": "Drill",
    "mirrors": "Mirror",
    "moves": "Move",
    "qualification": "HostRound PhaseTime QualificationRun RunFigure RunLog",
    "recipes": "Checkpoint DamagedFile Verification VerifiedDepot",
    "recovery": "Recovery",
    "sandboxes": "Sandbox SandboxPlace SandboxVolume",
    "storage": "Growth Split",
    "transfer": "Conflict Transfer",
    "workspaces": "Rescue Workspace WorkspaceClient",
}
# Deleted by their features: where.
BY_FEATURE = {
    "accounts.Session": "people.sweeps.sweep_sessions",
    "accounts.SignInAttempts": "accounts.attempts",
    "catalog.SubmittedChange": "catalog.sweeps.watch",
    "catalog.SubmittedChange_templates": "catalog.sweeps.watch",
    "directory.DirectorySync": "directory.sweeps.sweep_directory",
    "efficiency.ReductionDay": "efficiency.samples",
    "engine.LockWait": "engine.slots.observe",
    "engine.WorkerQueues": "engine.workers.tell_queues",
    "insight.ProgramUse": "insight.sweeps.sweep_configurations",
    "limits.LimitDay": "limits.samples",
    "notify.WebhookDelivery": "notify.sweeps.webhooks.forget_old",
    "probes.ProbeRun": "probes.sweeps.sweep_old_probes",
    "probes.ProbeWeek": "probes.sweeps.sweep_old_probes",
    "probes.ProcessCount": "probes.sweeps.sweep_old_probes",
    "probes.ReportMail": "probes.sweeps.sweep_old_probes",
    "procrastinate.ProcrastinateJob": "retention.actions.delete_ended_jobs",
    "rescues.RescuePiece": "rescues.sweeps",
    "rescues.RescueRead": "rescues.sweeps",
    "server_log.LockSum": "server_log.sweeps.sweep_log_days",
    "server_log.LogCommand": "server_log.sweeps.sweep_log_days",
    "server_log.LogHour": "server_log.polling",
    "server_log.LogMessage": "server_log.sweeps.sweep_log_days",
    "server_log.LogSum": "server_log.sweeps.sweep_log_days",
    "server_log.LogTableUse": "server_log.sweeps.sweep_log_days",
    "server_log.RepeatedCommand": "server_log.sweeps.sweep_log_days",
    "server_log.SeenCheckpoint": "server_log.sweeps.sweep_log_days",
    "sites.AggregateDay": "limits.sweeps",
    "sites.CapacityDay": "limits.sweeps",
    "storage.OwnBytesDay": "storage.sweeps.sweep_own_bytes",
    "workspace_snapshots.ClientReading": "workspace_snapshots.sweeps",
    "workspace_snapshots.WorkspaceSnapshot": "workspace_snapshots.sweeps",
}


def labels(named: dict[str, str]) -> list[str]:
    return [f"{app}.{name}" for app, names in named.items() for name in names.split()]


def test_every_table_is_bounded_or_has_a_retention() -> None:
    """A new table fails here until somebody has decided how long its rows stay."""
    tables = {
        model._meta.label
        for model in apps.get_models(include_auto_created=True)
        if not model.__module__.startswith("tests.")
    }
    ruled = [rule.model._meta.label for rule in RULES]
    ruled += [rule.parts._meta.label for rule in RULES if rule.parts is not None]
    decided = [
        *labels(BOUNDED),
        *labels(HISTORY),
        *BY_FEATURE,
        *ruled,
        Event._meta.label,
    ]

    assert len(decided) == len(set(decided))
    assert set(decided) == tables


def test_what_deletes_rows_is_there() -> None:
    for path in set(BY_FEATURE.values()):
        module, name = f"provisioner.{path}", ""
        while True:
            try:
                found = import_module(module)
                break
            except ModuleNotFoundError:
                module, _, name = module.rpartition(".")
        assert not name or hasattr(found, name), path


@pytest.mark.parametrize(
    ("model", "since"),
    [
        (Operation, "ended_at"),
        (Notification, "created_at"),
        (Snapshot, "deleted_at"),
        (TrafficDay, "day"),
    ],
)
def test_where_rows_are_many_an_index_finds_old_ones(
    model: type[Model], since: str
) -> None:
    first = {
        str(names[0]).lstrip("-")
        for each in (*model._meta.indexes, *model._meta.constraints)
        if (names := getattr(each, "fields", ()))
    }

    assert since in first
    assert any(rule.model is model for rule in RULES)
