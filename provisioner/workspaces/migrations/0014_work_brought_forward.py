import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0013_quality_of_generations'),
    ]

    operations = [
        migrations.CreateModel(
            name='Carry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('takes_changed', models.BooleanField(default=True, help_text='Files changed without opening them, as edits.')),
                ('takes_untracked', models.BooleanField(default=False, help_text='Files that Perforce does not know.')),
                ('retires_source', models.BooleanField(default=True, help_text='The source goes to the trash if nothing is in doubt.')),
                ('plan', models.JSONField(blank=True, null=True)),
                ('shelves', models.JSONField(blank=True, null=True)),
                ('changes', models.JSONField(blank=True, default=dict)),
                ('conflicts', models.JSONField(blank=True, default=dict)),
                ('counts', models.JSONField(blank=True, default=dict, help_text='What arrived, by kind.')),
                ('outcome', models.TextField(blank=True, help_text='What became of the source, in a sentence.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('carried_at', models.DateTimeField(blank=True, null=True)),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='carries', to='workspaces.workspace')),
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='carry', to='workspaces.workspace')),
            ],
            options={
                'verbose_name_plural': 'carries',
                'ordering': ('-created_at', '-id'),
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('workspace', models.F('source')), _negated=True), name='carry_is_between_two'),
                    models.CheckConstraint(condition=models.Q(('carried_at__isnull', True), ('shelves__isnull', False), _connector='OR'), name='carry_done_has_shelves'),
                ],
            },
        ),
        migrations.AlterField(
            model_name='operation',
            name='kind',
            field=models.CharField(choices=[('provision', 'Provision'), ('forward_look', 'Look at work to bring forward'), ('forward', 'Bring forward'), ('retire', 'Retire'), ('restore', 'Restore'), ('purge', 'Purge'), ('template_build', 'Build template')], max_length=20),
        ),
    ]
