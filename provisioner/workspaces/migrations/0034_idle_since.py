from django.db import migrations, models

# What is not there is null, which PostgreSQL passes over when it looks for the newest.
WORK = ("submitted", "shelved", "pending", "files", "touched")
NEWEST = ", ".join(f"(NULLIF(activity->'{kind}'->>'at', ''))::timestamptz" for kind in WORK)
ACCESSED = "(NULLIF(activity->'accessed'->>'at', ''))::timestamptz"
FILL = f"""
    UPDATE workspaces_workspace
    SET worked_at = GREATEST({NEWEST}), used_at = GREATEST({NEWEST}, {ACCESSED})
    WHERE activity <> '{{}}'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0033_indexes_for_pages"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="worked_at",
            field=models.DateTimeField(
                blank=True,
                help_text="The newest sign of work among these.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="workspace",
            name="used_at",
            field=models.DateTimeField(
                blank=True,
                help_text="The newest sign of any kind among these.",
                null=True,
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
