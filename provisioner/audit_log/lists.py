"""The list of audit events."""

from __future__ import annotations

from provisioner.audit_log.forms import AuditLogFilterForm
from provisioner.audit_log.models import Event
from provisioner.audit_log.queries import events_matching, newest_since
from provisioner.web.lists.listing import Column, Listing

AUDIT_LOG = Listing[Event](
    name="audit-log",
    one="event",
    many="events",
    columns=(
        Column("at", "When", "at", "at", is_unbroken=True, begins_descending=True),
        Column("kind", "", "kind"),
        Column("subject", "About", "subject"),
        Column("message", "What", "message"),
        Column("reason", "", "reason"),
        Column("actor", "Who", "actor_name", is_unbroken=True),
        Column("via", "From", "via"),
        Column("ip", "", "ip"),
        Column("user_agent", "", "user_agent"),
        Column("subject_kind", "", "subject_kind"),
        Column("subject_id", "", "subject_id"),
    ),
    cells="audit_log/_cells.html",
    matching=events_matching,
    reads=(
        *("at", "kind", "message", "reason", "actor_name", "via", "ip", "user_agent"),
        *("subject_kind", "subject_id", "subject", "template", "data"),
        *("workspace__is_pooled", "template__name"),
    ),
    usual="-at",
    is_bounded=True,
    is_downloaded_whole=True,
    newest=newest_since,
    form=AuditLogFilterForm,
)
