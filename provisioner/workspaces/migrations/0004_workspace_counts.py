from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = (("workspaces", "0003_workspace_without_client_spec"),)

    operations = (
        migrations.AddIndex(
            model_name="workspace",
            index=models.Index(
                fields=("template", "-created_at"),
                include=("owner", "ready_at", "made_ahead_at"),
                condition=Q(is_pooled=False),
                name="workspace_of_template",
            ),
        ),
        migrations.AddIndex(
            model_name="workspace",
            index=models.Index(
                fields=("site", "template", "snapshot"),
                condition=~Q(state="retired"),
                name="workspace_in_place",
            ),
        ),
    )
