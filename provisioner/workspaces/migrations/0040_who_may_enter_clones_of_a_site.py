from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0039_environment_of_bisections"),
    ]

    operations = [
        migrations.AddField(
            model_name="site",
            name="clones_open_to",
            field=models.CharField(
                choices=[
                    ("owner", "its owner alone"),
                    ("group-reads", "its owner's group, to read"),
                    ("group-writes", "its owner's group, to read and write"),
                ],
                db_default="owner",
                default="owner",
                help_text="Who may enter a new clone, unless its owner says otherwise. "
                "What is in it has modes of its own. Templates are for their owner "
                "alone.",
                max_length=16,
            ),
        ),
    ]
