from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0008_template_archives"),
    ]

    operations = [
        migrations.AlterField(
            "template",
            "state",
            models.CharField(
                choices=[
                    ("new", "Never built"),
                    ("building", "Building"),
                    ("ready", "Ready"),
                    ("failed", "Last build failed"),
                    ("deleting", "Being deleted"),
                    ("deleted", "Deleted"),
                ],
                default="new",
                max_length=8,
            ),
        ),
        migrations.AddConstraint(
            "template",
            models.CheckConstraint(
                name="template_deleted_is_archived",
                condition=~Q(state__in=("deleting", "deleted"))
                | Q(archived_at__isnull=False),
            ),
        ),
        migrations.RemoveConstraint("template", "template_name_unique_in_site"),
        migrations.AddConstraint(
            "template",
            models.UniqueConstraint(
                fields=("site", "name"),
                condition=~Q(state="deleted"),
                name="template_name_unique_in_site",
            ),
        ),
    ]
