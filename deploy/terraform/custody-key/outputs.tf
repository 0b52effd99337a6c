output "arn" {
  description = "For kms_keys[].arns of the ceremony."
  value       = local.is_replica ? aws_kms_replica_key.this[0].arn : aws_kms_key.this[0].arn
}
