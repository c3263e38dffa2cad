from django.db import migrations, models

import provisioner.sites.values


class Migration(migrations.Migration):
    dependencies = [
        ("sites", "0002_failing_since"),
    ]

    operations = [
        migrations.AddField(
            "site",
            "ssh_host",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="A host that mounts the namespace and lets people in by SSH. "
                "Pages of workspaces open VS Code there. Empty: they offer no editor.",
                max_length=255,
                validators=[provisioner.sites.values.host_validator],
            ),
        ),
    ]
