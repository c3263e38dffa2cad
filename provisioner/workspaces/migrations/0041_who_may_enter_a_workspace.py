from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0040_who_may_enter_clones_of_a_site"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="opened_to",
            field=models.CharField(
                blank=True,
                choices=[
                    ("owner", "its owner alone"),
                    ("group-reads", "its owner's group, to read"),
                    ("group-writes", "its owner's group, to read and write"),
                ],
                db_default="",
                default="",
                help_text="Who may enter its root directory. Empty: as its site says.",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="workspace",
            name="root_mode",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The mode that its root directory was given last, in octal "
                "digits. Its owner may have changed it since.",
                max_length=4,
            ),
        ),
    ]
