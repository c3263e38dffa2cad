from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

from provisioner.accounts.names import check_one_line


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0004_snapshot_labels"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "snapshot",
            "withdrawn_at",
            models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            "snapshot",
            "withdrawn_by",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=models.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            "snapshot",
            "withdraw_reason",
            models.CharField(
                blank=True, max_length=500, validators=[check_one_line]
            ),
        ),
        migrations.AddConstraint(
            "snapshot",
            models.CheckConstraint(
                name="snapshot_withdrawn_by_somebody_for_a_reason",
                condition=Q(
                    withdrawn_at__isnull=True,
                    withdrawn_by__isnull=True,
                    withdraw_reason="",
                )
                | (
                    Q(withdrawn_at__isnull=False, withdrawn_by__isnull=False)
                    & ~Q(withdraw_reason="")
                ),
            ),
        ),
    ]
