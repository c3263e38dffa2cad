"""The rows: facts about one thing each, and the rules that the database keeps.

Nothing here talks to another system, and state is written by states.py alone.
"""

from __future__ import annotations

from provisioner.workspaces.models.bisections import Bisection, Trial, Verdict
from provisioner.workspaces.models.capacity import CapacityDay, SiteCapacity
from provisioner.workspaces.models.carries import Carry
from provisioner.workspaces.models.changes import (
    RefreshPolicy,
    RefreshSwitch,
    ServerWatch,
    SubmittedChange,
    TemplateWatch,
)
from provisioner.workspaces.models.connections import ConnectionTest
from provisioner.workspaces.models.events import Event
from provisioner.workspaces.models.findings import AuditedSystem, AuditRun, Finding
from provisioner.workspaces.models.governor import Governor, LockWait
from provisioner.workspaces.models.leases import LeasePolicy, Notice
from provisioner.workspaces.models.names import name_validator
from provisioner.workspaces.models.operations import (
    Operation,
    PerforceUse,
    Step,
    Unsaved,
)
from provisioner.workspaces.models.pools import Pool
from provisioner.workspaces.models.rescues import Rescue
from provisioner.workspaces.models.shares import Share
from provisioner.workspaces.models.sites import (
    OpenTo,
    PerforceServer,
    ServerAbilities,
    Site,
)
from provisioner.workspaces.models.subscriptions import Subscription, TemplateCheck
from provisioner.workspaces.models.templates import LineEnd, Quality, Snapshot, Template
from provisioner.workspaces.models.webhooks import (
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from provisioner.workspaces.models.workers import WorkerQueues
from provisioner.workspaces.models.workspaces import MOVING, Workspace

__all__ = [
    "MOVING",
    "AuditRun",
    "AuditedSystem",
    "Bisection",
    "CapacityDay",
    "Carry",
    "ConnectionTest",
    "Event",
    "Finding",
    "Governor",
    "LeasePolicy",
    "LineEnd",
    "LockWait",
    "Notice",
    "OpenTo",
    "Operation",
    "PerforceServer",
    "PerforceUse",
    "Pool",
    "Quality",
    "RefreshPolicy",
    "RefreshSwitch",
    "Rescue",
    "ServerAbilities",
    "ServerWatch",
    "Share",
    "Site",
    "SiteCapacity",
    "Snapshot",
    "Step",
    "SubmittedChange",
    "Subscription",
    "Template",
    "TemplateCheck",
    "TemplateWatch",
    "Trial",
    "Unsaved",
    "Verdict",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "WorkerQueues",
    "Workspace",
    "name_validator",
]
