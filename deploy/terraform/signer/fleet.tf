# The parents: instances with enclaves on, whose metadata service answers only what runs on the instance itself
# (IMDSv2, one hop). A parent is replaced when its machine fails, and not when the signer is sealed or unhealthy: a
# seal is to last, and a new parent would be sealed too.

data "aws_partition" "this" {}
data "aws_region" "this" {}

resource "aws_launch_template" "parent" {
  name_prefix            = "${var.name}-parent-"
  image_id               = var.ami_id
  instance_type          = var.instance_type
  update_default_version = true
  user_data              = var.user_data == null ? null : base64encode(var.user_data)
  vpc_security_group_ids = [aws_security_group.parents.id]
  tags                   = var.tags

  iam_instance_profile {
    arn = aws_iam_instance_profile.parent.arn
  }
  enclave_options {
    enabled = true
  }
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    http_protocol_ipv6          = "disabled"
    instance_metadata_tags      = "disabled"
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      encrypted             = true
      volume_type           = "gp3"
      volume_size           = 20
      delete_on_termination = true
    }
  }
  monitoring {
    enabled = true
  }
  tag_specifications {
    resource_type = "instance"
    tags          = merge(var.tags, { Name = "${var.name}-parent" })
  }
}

resource "aws_autoscaling_group" "parents" {
  name                      = "${var.name}-parents"
  min_size                  = var.parents
  max_size                  = var.parents
  desired_capacity          = var.parents
  vpc_zone_identifier       = var.subnet_ids
  target_group_arns         = [aws_lb_target_group.attested.arn]
  health_check_type         = "EC2"
  wait_for_capacity_timeout = "0"
  # No rebalancing between zones and no refresh by itself: a new parent is let in by hand, after its image.
  suspended_processes = ["AZRebalance"]

  launch_template {
    id      = aws_launch_template.parent.id
    version = aws_launch_template.parent.latest_version
  }
}
