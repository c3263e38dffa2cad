from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0034_idle_since"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("kind", "retire")),
                fields=["workspace"],
                name="operation_retirements",
            ),
        ),
    ]
