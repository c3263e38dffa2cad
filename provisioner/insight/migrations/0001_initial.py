
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('sites', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ProcessReading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('read_at', models.DateTimeField(null=True)),
                ('trouble', models.TextField(blank=True)),
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='process_reading', to='sites.perforceserver')),
            ],
        ),
        migrations.CreateModel(
            name='Process',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.BigIntegerField()),
                ('state', models.CharField(choices=[('R', 'Running'), ('T', 'Being ended'), ('P', 'Paused'), ('B', 'In the background'), ('F', 'Finishing'), ('I', 'Idle')], max_length=1)),
                ('user', models.TextField()),
                ('program', models.TextField(blank=True)),
                ('client', models.TextField(blank=True)),
                ('host', models.TextField(blank=True)),
                ('command', models.TextField()),
                ('arguments', models.TextField(blank=True)),
                ('started_at', models.DateTimeField()),
                ('gone_host', models.TextField(blank=True)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='processes', to='sites.perforceserver')),
            ],
            options={
                'ordering': ('started_at', 'pk'),
                'constraints': [models.UniqueConstraint(fields=('server', 'number'), name='process_number_once_at_server')],
            },
        ),
        migrations.CreateModel(
            name='OrphanRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('command_hours', models.PositiveIntegerField(blank=True, default=72, null=True)),
                ('idle_hours', models.PositiveIntegerField(blank=True, default=72, null=True)),
                ('only_gone_hosts', models.BooleanField(default=False)),
                ('is_automatic', models.BooleanField(default=False)),
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='orphan_rule', to='sites.perforceserver')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('command_hours__isnull', True), ('command_hours__gte', 1), _connector='OR'), models.Q(('idle_hours__isnull', True), ('idle_hours__gte', 1), _connector='OR')), name='orphan_rule_hours_are_at_least_one')],
            },
        ),
        migrations.CreateModel(
            name='ProgramUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('program', models.TextField()),
                ('release', models.TextField(blank=True)),
                ('user', models.TextField()),
                ('host', models.TextField(blank=True)),
                ('first_seen_at', models.DateTimeField()),
                ('last_seen_at', models.DateTimeField()),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='program_uses', to='sites.perforceserver')),
            ],
            options={
                'ordering': ('-last_seen_at', 'pk'),
                'constraints': [models.UniqueConstraint(fields=('server', 'program', 'release', 'user'), name='program_use_once_for_user_and_release')],
            },
        ),
        migrations.CreateModel(
            name='ProcessEnding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.BigIntegerField()),
                ('user', models.TextField()),
                ('command', models.TextField()),
                ('started_at', models.DateTimeField()),
                ('requested_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('state', models.CharField(choices=[('requested', 'Requested'), ('ended', 'Ended'), ('failed', 'Not ended')], default='requested', max_length=9)),
                ('message', models.TextField(blank=True)),
                ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='process_endings', to='sites.perforceserver')),
            ],
            options={
                'ordering': ('-pk',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'requested')), fields=('server', 'number'), name='process_ending_requested_once')],
            },
        ),
        migrations.CreateModel(
            name='ServerConfiguration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('read_at', models.DateTimeField(null=True)),
                ('trouble', models.TextField(blank=True)),
                ('version', models.TextField(blank=True)),
                ('users', models.BigIntegerField(null=True)),
                ('files', models.BigIntegerField(null=True)),
                ('host', models.TextField(blank=True)),
                ('host_read_at', models.DateTimeField(null=True)),
                ('memory_bytes', models.BigIntegerField(null=True)),
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='configuration', to='sites.perforceserver')),
            ],
        ),
        migrations.CreateModel(
            name='ServerFilesystem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.TextField()),
                ('fs_type', models.TextField()),
                ('mount_point', models.TextField(blank=True)),
                ('percent_used', models.PositiveSmallIntegerField()),
                ('mount_options', models.TextField(blank=True)),
                ('configuration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='filesystems', to='insight.serverconfiguration')),
            ],
            options={
                'ordering': ('pk',),
                'constraints': [models.UniqueConstraint(fields=('configuration', 'name'), name='server_filesystem_once')],
            },
        ),
        migrations.CreateModel(
            name='ServerSetting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.TextField()),
                ('value', models.TextField(blank=True)),
                ('source', models.TextField(blank=True)),
                ('configuration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='settings', to='insight.serverconfiguration')),
            ],
            options={
                'ordering': ('name',),
                'constraints': [models.UniqueConstraint(fields=('configuration', 'name'), name='server_setting_once')],
            },
        ),
    ]
