from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sites", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            "sitecapacity",
            "failing_since",
            models.DateTimeField(
                blank=True,
                help_text="When the first of the attempts failed that failed since "
                "one worked.",
                null=True,
            ),
        ),
    ]
