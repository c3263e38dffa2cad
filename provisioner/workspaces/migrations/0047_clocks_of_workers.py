from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0046_pools_of_workers'),
    ]

    operations = [
        migrations.AddField(
            model_name='workerqueues',
            name='clock_ahead_seconds',
            field=models.FloatField(default=0.0),
        ),
    ]
