from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workspaces', '0002_life_of_a_workspace'),
    ]

    operations = [
        migrations.AddField(
            model_name='perforceserver',
            name='checks_read_access',
            field=models.BooleanField(default=True, help_text='Nobody gets a clone of files that they may not read in Perforce. Our account has to be super, or admin with dm.protects.allow.admin=1.'),
        ),
        migrations.AddField(
            model_name='perforceserver',
            name='read_access_host',
            field=models.GenericIPAddressField(blank=True, help_text="The address for which people's protections are looked at. Empty: only what they may read from anywhere counts.", null=True),
        ),
    ]
