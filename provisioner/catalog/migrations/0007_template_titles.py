from django.db import migrations, models

from provisioner.accounts.names import check_one_line


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0006_snapshot_holds"),
    ]

    operations = [
        migrations.AddField(
            "template",
            "title",
            models.CharField(
                blank=True,
                max_length=100,
                validators=[check_one_line],
                help_text="What pages call it. Empty: its name, which is for good.",
            ),
        ),
    ]
