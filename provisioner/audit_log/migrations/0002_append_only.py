"""The audit log is append-only: its table refuses every change but a new row."""

from django.db import migrations

REFUSE = """
CREATE FUNCTION cloneyard_audit_log_is_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE'
        AND current_setting('cloneyard.allow_truncate', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'The audit log is append-only: % is refused.', TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER audit_log_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log_event
    FOR EACH STATEMENT EXECUTE FUNCTION cloneyard_audit_log_is_append_only();

ALTER TABLE audit_log_event ENABLE ALWAYS TRIGGER audit_log_is_append_only;
"""

ALLOW = """
DROP TRIGGER audit_log_is_append_only ON audit_log_event;
DROP FUNCTION cloneyard_audit_log_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("audit_log", "0001_initial")]

    operations = [migrations.RunSQL(REFUSE, ALLOW)]
