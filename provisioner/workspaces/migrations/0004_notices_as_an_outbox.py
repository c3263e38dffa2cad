from __future__ import annotations

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0003_read_access")]

    operations = [
        migrations.AddField(
            "notice",
            "due_at",
            models.DateTimeField(default=django.utils.timezone.now),
            preserve_default=False,
        ),
        migrations.AddField(
            "notice",
            "data",
            models.JSONField(default=dict, help_text="What the mail has to say."),
        ),
        migrations.AddField(
            "notice", "claimed_at", models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            "notice", "voided_at", models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            "notice", "void_reason", models.CharField(blank=True, max_length=500)
        ),
        migrations.AddField(
            "notice", "attempts", models.PositiveIntegerField(default=0)
        ),
        migrations.AddField(
            "notice", "retry_at", models.DateTimeField(blank=True, null=True)
        ),
        migrations.AlterField(
            "notice",
            "kind",
            models.CharField(
                choices=[
                    ("lease_ends", "Lease ends soon"),
                    ("trashed", "Moved to the trash"),
                    ("retire_failed", "Could not be retired"),
                    ("abandoned", "Looks abandoned"),
                ],
                max_length=40,
            ),
        ),
        migrations.AddIndex(
            "notice",
            models.Index(
                condition=models.Q(claimed_at__isnull=True, voided_at__isnull=True),
                fields=["due_at"],
                name="notice_due",
            ),
        ),
        migrations.AddConstraint(
            "notice",
            models.CheckConstraint(
                condition=models.Q(sent_at__isnull=True)
                | models.Q(claimed_at__isnull=False, voided_at__isnull=True),
                name="notice_sent_was_claimed",
            ),
        ),
    ]
