from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

from provisioner.accounts.names import check_one_line


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0005_snapshot_withdrawals"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "snapshot",
            "held_at",
            models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            "snapshot",
            "held_by",
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
            "hold_reason",
            models.CharField(
                blank=True, max_length=500, validators=[check_one_line]
            ),
        ),
        migrations.AddConstraint(
            "snapshot",
            models.UniqueConstraint(
                fields=("template",),
                condition=Q(held_at__isnull=False),
                name="snapshot_held_once_in_template",
            ),
        ),
        migrations.AddConstraint(
            "snapshot",
            models.CheckConstraint(
                name="snapshot_held_by_somebody_for_a_reason",
                condition=Q(held_at__isnull=True, held_by__isnull=True, hold_reason="")
                | (
                    Q(held_at__isnull=False, held_by__isnull=False)
                    & ~Q(hold_reason="")
                ),
            ),
        ),
        migrations.AddConstraint(
            "snapshot",
            models.CheckConstraint(
                name="snapshot_held_can_be_had",
                condition=Q(held_at__isnull=True)
                | Q(deleted_at__isnull=True, withdrawn_at__isnull=True, parts=[]),
            ),
        ),
    ]
