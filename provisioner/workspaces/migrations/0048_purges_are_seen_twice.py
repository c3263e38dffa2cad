from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0047_clocks_of_workers'),
    ]

    operations = [
        migrations.AddField(
            model_name='workspace',
            name='purge_seen_at',
            field=models.DateTimeField(
                blank=True,
                help_text='When a sweep first saw that its time is over.',
                null=True,
            ),
        ),
    ]
