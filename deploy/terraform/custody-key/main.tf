# One custody key of the ceremony, or one replica of it, with its policy. Use one account a key where you can: whoever
# administers all keys of a threshold opens the master key. The policy is made by strongroom (`make docs`): do not edit
# the templates here.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}

locals {
  is_replica = var.replica_of != null
  template   = var.unsafe_without_attestation ? "key-policy-unattested.json.tftpl" : "key-policy.json.tftpl"
  policy = templatefile("${path.module}/${local.template}", {
    administrators = var.administrators
    account        = "arn:${data.aws_partition.this.partition}:iam::${data.aws_caller_identity.this.account_id}:root"
    signers        = var.signers
    encrypting     = var.unsafe_parents_encrypt ? var.signers : var.table_users
    images         = var.images
    phase          = var.phase
    network        = var.network
    deployment_id  = var.deployment_id
    sealers        = var.sealers

    unsafe_parents_encrypt = var.unsafe_parents_encrypt
  })
}

resource "aws_kms_key" "this" {
  count = local.is_replica ? 0 : 1

  description             = "strongroom ${var.deployment_id}: a share of the master key"
  key_usage               = "ENCRYPT_DECRYPT"
  multi_region            = var.multi_region
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = local.policy
  # KMS refuses a policy under which whoever applies it could not change it again.
  bypass_policy_lockout_safety_check = false
  tags                               = var.tags

  lifecycle {
    prevent_destroy = true
    precondition {
      condition     = alltrue([for arn in var.administrators : split(":", arn)[4] == data.aws_caller_identity.this.account_id])
      error_message = "Administrators are of the key's own account: KMS lets no other account change a key's policy."
    }
    precondition {
      condition     = var.phase == "running" || var.unsafe_without_attestation || var.unsafe_parents_encrypt || length(var.table_users) > 0
      error_message = "Name the table users: in this phase they encrypt the shares, and the parents never do."
    }
  }
}

resource "aws_kms_replica_key" "this" {
  count = local.is_replica ? 1 : 0

  description                        = "strongroom ${var.deployment_id}: a share of the master key, replica"
  primary_key_arn                    = var.replica_of.arn
  deletion_window_in_days            = 30
  policy                             = local.policy
  bypass_policy_lockout_safety_check = false
  tags                               = var.tags

  lifecycle {
    prevent_destroy = true
    precondition {
      condition     = alltrue([for arn in var.administrators : split(":", arn)[4] == data.aws_caller_identity.this.account_id])
      error_message = "Administrators are of the key's own account: KMS lets no other account change a key's policy."
    }
    precondition {
      condition     = var.phase == "running" || var.unsafe_without_attestation || var.unsafe_parents_encrypt || length(var.table_users) > 0
      error_message = "Name the table users: in this phase they encrypt the shares, and the parents never do."
    }
  }
}
