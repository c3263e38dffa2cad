from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0004_notices_as_an_outbox'),
    ]

    operations = [
        migrations.AddField(
            model_name='sitecapacity',
            name='details',
            field=models.JSONField(blank=True, default=dict, help_text="{clones: {uuid of a template's volume or snapshot: clones that are not ours}, snapshots: {uuid of a template's volume: all it has}}."),
        ),
        migrations.AddField(
            model_name='sitecapacity',
            name='max_volumes',
            field=models.PositiveIntegerField(blank=True, help_text='What the SVM allows. Empty: no limit.', null=True),
        ),
        migrations.AddField(
            model_name='sitecapacity',
            name='volumes_of_others',
            field=models.PositiveIntegerField(default=0, help_text='Those that no row of ours stands for.'),
        ),
        migrations.AlterField(
            model_name='sitecapacity',
            name='measured_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
