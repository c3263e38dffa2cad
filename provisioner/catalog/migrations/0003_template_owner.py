from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0002_template_error_patterns"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameField("template", "created_by", "owner"),
        migrations.AlterField(
            "template",
            "owner",
            models.ForeignKey(
                help_text="Who looks after it, and may say which of its snapshots "
                "people get.",
                on_delete=models.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
