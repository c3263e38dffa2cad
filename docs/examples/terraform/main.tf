# A Perforce workspace for as long as this configuration names it. It calls the command
# line `cloneyard`; the token is in CLONEYARD_TOKEN, or kept by `cloneyard login`.
# Built-in resources only, so nothing is downloaded. OpenTofu reads it, too.
terraform {
  required_version = ">= 1.4"
}

locals {
  lease       = "${var.lease_hours}h"
  results_dir = abspath(var.results_dir)
  result_file = "${local.results_dir}/${terraform_data.answer.id}.json"
}

# What destroys it reads `input`. A change of the triggers makes another workspace, whose
# name ends otherwise: the first one may still be in the trash.
resource "terraform_data" "workspace" {
  input = {
    server      = var.server
    name        = var.name
    unsubmitted = var.unsubmitted
    cloneyard   = var.cloneyard
  }
  triggers_replace = [
    var.server, var.name, var.template, var.purpose, var.snapshot, var.site,
  ]

  # Exit codes 1, 5 and 7: it was not created, or perhaps, or not in time. Terraform does
  # not destroy what it failed to create, so what is left of it is retired here.
  provisioner "local-exec" {
    interpreter = ["/bin/sh", "-euc"]
    command     = <<-EOT
      name=$NAME-$${ID%%-*}
      set -- new "$TEMPLATE" --name "$name" --key "terraform $ID" \
        --purpose "$PURPOSE" --lease "$LEASE" --timeout "$TIMEOUT"
      [ -z "$SNAPSHOT" ] || set -- "$@" --snapshot "$SNAPSHOT"
      [ -z "$SITE" ] || set -- "$@" --site "$SITE"
      ended=0
      "$CLONEYARD" "$@" || ended=$?
      case $ended in
        1 | 5 | 7) "$CLONEYARD" retire "$name" --no-wait >&2 || : ;;
      esac
      exit "$ended"
    EOT
    environment = {
      CLONEYARD        = var.cloneyard
      CLONEYARD_SERVER = var.server
      ID               = self.id
      NAME             = var.name
      TEMPLATE         = var.template
      PURPOSE          = var.purpose
      LEASE            = local.lease
      TIMEOUT          = var.timeout
      SNAPSHOT         = var.snapshot
      SITE             = var.site
    }
  }

  # Exit code 4: it is gone already. Unsubmitted work stops this, unless `unsubmitted`
  # says otherwise: the workspace stays, and so does this resource.
  provisioner "local-exec" {
    when        = destroy
    interpreter = ["/bin/sh", "-euc"]
    command     = <<-EOT
      set -- retire "$NAME-$${ID%%-*}"
      [ "$UNSUBMITTED" = stop ] || set -- "$@" "--$UNSUBMITTED"
      ended=0
      "$CLONEYARD" "$@" || ended=$?
      [ "$ended" = 0 ] || [ "$ended" = 4 ] || exit "$ended"
    EOT
    environment = {
      CLONEYARD        = self.output.cloneyard
      CLONEYARD_SERVER = self.output.server
      ID               = self.id
      NAME             = self.output.name
      UNSUBMITTED      = self.output.unsubmitted
    }
  }
}

# What the server says of it goes through a file into the state, and is read there.
resource "terraform_data" "answer" {
  triggers_replace = [terraform_data.workspace.id]

  provisioner "local-exec" {
    interpreter = ["/bin/sh", "-euc"]
    command     = <<-EOT
      mkdir -p "$RESULTS_DIR"
      "$CLONEYARD" show "$NAME-$${WORKSPACE%%-*}" --json > "$RESULTS_DIR/$ID.json"
    EOT
    environment = {
      CLONEYARD        = var.cloneyard
      CLONEYARD_SERVER = var.server
      ID               = self.id
      NAME             = var.name
      WORKSPACE        = terraform_data.workspace.id
      RESULTS_DIR      = local.results_dir
    }
  }
}

resource "terraform_data" "result" {
  input            = try(jsondecode(file(local.result_file)), null)
  triggers_replace = [terraform_data.answer.id]

  lifecycle {
    ignore_changes = [input] # without the file it stays what it was
  }
}

# A change of the lease extends it from then on; the workspace stays. A shorter one
# changes nothing.
resource "terraform_data" "lease" {
  triggers_replace = [terraform_data.workspace.id, local.lease]

  provisioner "local-exec" {
    interpreter = ["/bin/sh", "-euc"]
    command     = "\"$CLONEYARD\" extend \"$NAME\" \"$LEASE\""
    environment = {
      CLONEYARD        = var.cloneyard
      CLONEYARD_SERVER = var.server
      NAME             = terraform_data.result.output.name
      LEASE            = local.lease
    }
  }
}
