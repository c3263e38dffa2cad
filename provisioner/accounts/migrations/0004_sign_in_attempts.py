from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_teams_and_quotas'),
    ]

    operations = [
        migrations.CreateModel(
            name='SignInAttempts',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('count', models.PositiveIntegerField()),
                ('ends_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'verbose_name_plural': 'sign-in attempts',
            },
        ),
    ]
