output "parent_role_arn" {
  description = "For `signers` of every custody key, and --signer of strongroom setup kms-policy."
  value       = aws_iam_role.parent.arn
}

output "tables_user_name" {
  description = "Whose access key is to be sealed; null without sealed table credentials."
  value       = var.unsafe_parent_writes_tables ? null : aws_iam_user.tables[0].name
}

output "table_user_arns" {
  description = "For `table_users` of every custody key, and --table-user of strongroom setup kms-policy; none where the parents write the tables."
  value       = aws_iam_user.tables[*].arn
}

output "recovery_policy_arn" {
  description = "Attach it to whoever recovers a sealed signer."
  value       = aws_iam_policy.recovery.arn
}

output "signer_url" {
  description = "For operators and validator clients, who verify the enclave behind it and not the name."
  value       = "https://${aws_lb.this.dns_name}:9443"
}

output "enclave_yaml" {
  description = "The configuration of the enclaves, to be completed (network, table_credentials) before the image is built: PCR16 covers every byte."
  value = templatefile("${path.module}/enclave.yaml.tftpl", {
    region             = data.aws_region.this.region
    deployment_id      = var.deployment_id
    state_table_arn    = aws_dynamodb_table.state.arn
    keys_table_arn     = aws_dynamodb_table.keys.arn
    slashing_table_arn = aws_dynamodb_table.slashing.arn
    kms_regions        = distinct([for arn in var.custody_key_arns : split(":", arn)[3]])
    unsafe             = var.unsafe_parent_writes_tables
    custody_key_arn    = var.custody_key_arns[0]
  })
}
