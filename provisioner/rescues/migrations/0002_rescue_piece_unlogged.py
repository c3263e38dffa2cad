from django.db import migrations


class Migration(migrations.Migration):
    """Pieces are on their way: no write-ahead log, and no compression of archives."""

    dependencies = [
        ("rescues", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE rescues_rescuepiece SET UNLOGGED",
            "ALTER TABLE rescues_rescuepiece SET LOGGED",
        ),
        migrations.RunSQL(
            "ALTER TABLE rescues_rescuepiece ALTER COLUMN data SET STORAGE EXTERNAL",
            "ALTER TABLE rescues_rescuepiece ALTER COLUMN data SET STORAGE EXTENDED",
        ),
    ]
