from django.db import migrations, models

from provisioner.accounts.names import check_one_line


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0003_template_owner"),
    ]

    operations = [
        migrations.AddField(
            "snapshot",
            "label",
            models.CharField(
                blank=True, max_length=60, validators=[check_one_line]
            ),
        ),
        migrations.AddField(
            "snapshot",
            "notes",
            models.TextField(blank=True, max_length=4000),
        ),
    ]
