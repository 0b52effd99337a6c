# Who reaches whom. Nothing is open to the world, and a parent reaches KMS and DynamoDB only, beside what is named.

resource "aws_security_group" "balancer" {
  name        = "${var.name}-balancer"
  description = "Clients to the balancer, the balancer to the parents"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each = toset(var.client_cidrs)

  security_group_id = aws_security_group.balancer.id
  description       = "Validator clients and operators, attested TLS"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 9443
  to_port           = 9443
}

resource "aws_vpc_security_group_egress_rule" "balancer" {
  for_each = toset(["9000", "9443"])

  security_group_id            = aws_security_group.balancer.id
  description                  = "Parents: attested TLS and probes"
  referenced_security_group_id = aws_security_group.parents.id
  ip_protocol                  = "tcp"
  from_port                    = tonumber(each.value)
  to_port                      = tonumber(each.value)
}

resource "aws_security_group" "parents" {
  name        = "${var.name}-parents"
  description = "The parents of the enclaves"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "balancer" {
  for_each = toset(["9000", "9443"])

  security_group_id            = aws_security_group.parents.id
  description                  = "The balancer: attested TLS and probes"
  referenced_security_group_id = aws_security_group.balancer.id
  ip_protocol                  = "tcp"
  from_port                    = tonumber(each.value)
  to_port                      = tonumber(each.value)
}

resource "aws_vpc_security_group_ingress_rule" "monitoring" {
  for_each = { for pair in setproduct(var.monitoring_security_group_ids, ["3000", "9101"]) : "${pair[0]}-${pair[1]}" => pair }

  security_group_id            = aws_security_group.parents.id
  description                  = "Metrics of the enclave and of the parent proxy"
  referenced_security_group_id = each.value[0]
  ip_protocol                  = "tcp"
  from_port                    = tonumber(each.value[1])
  to_port                      = tonumber(each.value[1])
}

resource "aws_vpc_security_group_egress_rule" "kms" {
  security_group_id            = aws_security_group.parents.id
  description                  = "KMS of this region"
  referenced_security_group_id = aws_security_group.endpoints.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_security_group_egress_rule" "dynamodb" {
  security_group_id = aws_security_group.parents.id
  description       = "DynamoDB"
  prefix_list_id    = aws_vpc_endpoint.dynamodb.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "other" {
  for_each = toset(var.other_egress_cidrs)

  security_group_id = aws_security_group.parents.id
  description       = "KMS of other regions"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_security_group" "endpoints" {
  name        = "${var.name}-endpoints"
  description = "The endpoint of KMS"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "endpoints" {
  security_group_id            = aws_security_group.endpoints.id
  description                  = "The parents"
  referenced_security_group_id = aws_security_group.parents.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}
