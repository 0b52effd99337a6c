# Who may do what, in each phase: the documents are those that `strongroom setup iam` prints (policies/, made by
# `make docs`: do not edit them here).

locals {
  granted = {
    key_arns           = var.custody_key_arns
    state_table_arn    = aws_dynamodb_table.state.arn
    keys_table_arn     = aws_dynamodb_table.keys.arn
    slashing_table_arn = aws_dynamodb_table.slashing.arn
  }
  # With sealed credentials the parents decrypt, in every phase, and call no table.
  parent_policy = var.unsafe_parent_writes_tables ? "signer-${var.phase}" : "parent"
}

resource "aws_iam_role" "parent" {
  name = "${var.name}-parent"
  tags = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "parent" {
  name   = "strongroom"
  role   = aws_iam_role.parent.id
  policy = templatefile("${path.module}/policies/${local.parent_policy}.json.tftpl", local.granted)
}

resource "aws_iam_role_policy_attachment" "ssm" {
  count = var.with_ssm ? 1 : 0

  role       = aws_iam_role.parent.name
  policy_arn = "arn:${data.aws_partition.this.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

resource "aws_iam_instance_profile" "parent" {
  name = "${var.name}-parent"
  role = aws_iam_role.parent.name
  tags = var.tags
}

# The user of the tables. Its access key is made by hand and sealed at once (docs/guides/custody.md, Sealed table
# credentials): made here it would lie in the state of Terraform.
resource "aws_iam_user" "tables" {
  count = var.unsafe_parent_writes_tables ? 0 : 1

  name = "${var.name}-tables"
  tags = var.tags
}

resource "aws_iam_user_policy" "tables" {
  count = var.unsafe_parent_writes_tables ? 0 : 1

  name   = "strongroom"
  user   = aws_iam_user.tables[0].name
  policy = templatefile("${path.module}/policies/tables-${var.phase}.json.tftpl", local.granted)
}

# For whoever recovers a sealed signer: attach it to a person's role when it is needed.
resource "aws_iam_policy" "recovery" {
  name        = "${var.name}-recovery"
  description = "Deletes the latch of a seal, or the row of a lost root token; no other row"
  policy      = templatefile("${path.module}/policies/recovery.json.tftpl", { state_table_arn = aws_dynamodb_table.state.arn })
  tags        = var.tags
}
