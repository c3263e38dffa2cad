from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0035_retirements_by_workspace"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="failed_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When it failed, the last time that it did.",
                null=True,
            ),
        ),
    ]
