"""Name the subjects and actors of events that were written before they had names."""

from __future__ import annotations

from django.db import migrations

NAME = """
UPDATE workspaces_event AS event SET
    subject_kind = CASE WHEN workspace.id IS NULL THEN 'template' ELSE 'workspace' END,
    subject_id = coalesce(workspace.id, template.id),
    subject = coalesce(workspace.name, template.name),
    actor_name = coalesce(
        (SELECT username FROM accounts_user WHERE id = event.actor_id), ''
    )
FROM workspaces_event AS self
LEFT JOIN workspaces_workspace AS workspace ON workspace.id = self.workspace_id
LEFT JOIN workspaces_template AS template ON template.id = self.template_id
WHERE self.id = event.id AND coalesce(workspace.id, template.id) IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0007_audit_trail")]

    operations = [migrations.RunSQL(NAME, migrations.RunSQL.noop)]
