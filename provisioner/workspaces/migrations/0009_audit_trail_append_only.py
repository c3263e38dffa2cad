"""Let the database refuse to change, delete or truncate the trail.

The one way around is a setting of the session, for a test's database that is emptied
between tests: it lets TRUNCATE pass, and nothing else. Who owns the table can drop the
trigger; give the application another role where that matters.
"""

from __future__ import annotations

from django.db import migrations

REFUSE = """
CREATE FUNCTION cloneyard_trail_is_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE'
        AND current_setting('cloneyard.allow_truncate', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'The trail is append-only: % is refused.', TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER trail_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON workspaces_event
    FOR EACH STATEMENT EXECUTE FUNCTION cloneyard_trail_is_append_only();

ALTER TABLE workspaces_event ENABLE ALWAYS TRIGGER trail_is_append_only;
"""

ALLOW = """
DROP TRIGGER trail_is_append_only ON workspaces_event;
DROP FUNCTION cloneyard_trail_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0008_audit_trail_names")]

    operations = [migrations.RunSQL(REFUSE, ALLOW)]
