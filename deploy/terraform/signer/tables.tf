# The three tables. Their rows cannot be made again: the master key, validator keys, what was signed. So each has
# point-in-time recovery and deletion protection, and Terraform refuses to replace one.

resource "aws_dynamodb_table" "state" {
  name                        = "${var.name}-state"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  deletion_protection_enabled = true
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled     = true
    kms_key_arn = var.tables_kms_key_arn
  }
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "keys" {
  name                        = "${var.name}-keys"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = true
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }
  attribute {
    name = "sk"
    type = "S"
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled     = true
    kms_key_arn = var.tables_kms_key_arn
  }
  lifecycle {
    prevent_destroy = true
  }
}

# In one region, without replicas: the first signer binds it to its own.
resource "aws_dynamodb_table" "slashing" {
  name                        = "${var.name}-slashing"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  deletion_protection_enabled = true
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled     = true
    kms_key_arn = var.tables_kms_key_arn
  }
  lifecycle {
    prevent_destroy = true
  }
}

# Nobody deletes slashing records; with sealed credentials the parents do nothing with any table.
resource "aws_dynamodb_resource_policy" "slashing" {
  resource_arn = aws_dynamodb_table.slashing.arn
  policy = templatefile(
    "${path.module}/policies/table-slashing${var.unsafe_parent_writes_tables ? "" : "-not-the-parents"}.json.tftpl",
    { table_arn = aws_dynamodb_table.slashing.arn, kept_out = [aws_iam_role.parent.arn] },
  )
}

resource "aws_dynamodb_resource_policy" "state" {
  count = var.unsafe_parent_writes_tables ? 0 : 1

  resource_arn = aws_dynamodb_table.state.arn
  policy = templatefile(
    "${path.module}/policies/table-state-not-the-parents.json.tftpl",
    { table_arn = aws_dynamodb_table.state.arn, kept_out = [aws_iam_role.parent.arn] },
  )
}

resource "aws_dynamodb_resource_policy" "keys" {
  count = var.unsafe_parent_writes_tables ? 0 : 1

  resource_arn = aws_dynamodb_table.keys.arn
  policy = templatefile(
    "${path.module}/policies/table-keys-not-the-parents.json.tftpl",
    { table_arn = aws_dynamodb_table.keys.arn, kept_out = [aws_iam_role.parent.arn] },
  )
}
