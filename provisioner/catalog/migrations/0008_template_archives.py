from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

from provisioner.accounts.names import check_one_line


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0007_template_titles"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "template",
            "archived_at",
            models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            "template",
            "archived_by",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=models.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            "template",
            "archive_reason",
            models.CharField(blank=True, max_length=500, validators=[check_one_line]),
        ),
        migrations.AddConstraint(
            "template",
            models.CheckConstraint(
                name="template_archived_by_somebody",
                condition=Q(
                    archived_at__isnull=True,
                    archived_by__isnull=True,
                    archive_reason="",
                )
                | Q(archived_at__isnull=False, archived_by__isnull=False),
            ),
        ),
    ]
