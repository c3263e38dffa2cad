"""What may be added while the release before still runs, CONTRIBUTING.md says."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [('workspaces', '0001_initial')]

    operations = [
        migrations.CreateModel(
            name='Noted',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(max_length=40)),
                ('process_id', models.PositiveIntegerField()),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
        ),
        migrations.RunSQL([
            "ALTER TABLE workspaces_workspace ADD COLUMN newer text",
            "ALTER TABLE engine_step ADD COLUMN newer text NOT NULL DEFAULT ''",
            "CREATE INDEX workspace_newer ON workspaces_workspace (newer)",
        ]),
    ]
