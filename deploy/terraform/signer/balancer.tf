# Clients reach an enclave by TCP that nobody on the way ends: the TLS of the enclave is attested, and a balancer that
# ended it would be a peer without evidence.

resource "aws_lb" "this" {
  name                             = var.name
  internal                         = true
  load_balancer_type               = "network"
  subnets                          = var.subnet_ids
  security_groups                  = [aws_security_group.balancer.id]
  enable_cross_zone_load_balancing = true
  enable_deletion_protection       = true
  tags                             = var.tags
}

resource "aws_lb_listener" "attested" {
  load_balancer_arn        = aws_lb.this.arn
  port                     = 9443
  protocol                 = "TCP"
  tcp_idle_timeout_seconds = 350
  tags                     = var.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.attested.arn
  }
}

resource "aws_lb_target_group" "attested" {
  name                   = var.name
  vpc_id                 = var.vpc_id
  target_type            = "instance"
  port                   = 9443
  protocol               = "TCP"
  preserve_client_ip     = "true"
  proxy_protocol_v2      = false
  deregistration_delay   = 60
  connection_termination = false
  tags                   = var.tags

  # The probes of the enclave, which the parent proxy carries: 503 while it is sealed or has no keys.
  health_check {
    protocol            = "HTTP"
    port                = "9000"
    path                = "/healthcheck"
    matcher             = "200"
    interval            = 10
    timeout             = 5
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}
