variable "name" {
  description = "The first part of all names."
  type        = string
  default     = "strongroom"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.name))
    error_message = "A name has 2 to 20 small letters, digits and hyphens."
  }
}

variable "deployment_id" {
  description = "signer_state.deployment_id: one that no other deployment has, for the life of the master key."
  type        = string
}

variable "custody_key_arns" {
  description = "Every key ARN of the ceremony, replicas and retired keys too."
  type        = list(string)

  validation {
    condition     = length(var.custody_key_arns) > 0 && alltrue([for arn in var.custody_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/", arn))])
    error_message = "A custody key is named by its key ARN: an alias can be pointed at another key."
  }
}

variable "phase" {
  description = "running; first-boot until the first start has written the master key; rotation while a new ceremony wraps it anew."
  type        = string
  default     = "running"

  validation {
    condition     = contains(["running", "first-boot", "rotation"], var.phase)
    error_message = "A phase is running, first-boot or rotation."
  }
}

variable "unsafe_parent_writes_tables" {
  description = "The parents' role calls the tables, as tee.nitro.unsafe_parent_writes_tables says to the enclaves. Otherwise a user calls them whose credentials only the measured image opens, and the tables refuse the parents' role."
  type        = bool
  default     = false
}

variable "tables_kms_key_arn" {
  description = "A customer managed key that encrypts the tables at rest; null takes the one that AWS keeps for DynamoDB. Never a custody key."
  type        = string
  default     = null

  validation {
    condition     = var.tables_kms_key_arn == null || !contains(var.custody_key_arns, coalesce(var.tables_kms_key_arn, "none"))
    error_message = "A custody key wraps shares and nothing else."
  }
}

variable "vpc_id" {
  description = "The VPC of the parents, their balancer and the endpoints of KMS and DynamoDB."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets for the balancer, the parents and the endpoint of KMS, in several zones."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) > 1
    error_message = "Name subnets of at least two zones."
  }
}

variable "route_table_ids" {
  description = "Route tables of these subnets, for the gateway endpoint of DynamoDB."
  type        = list(string)
}

variable "client_cidrs" {
  description = "Where validator clients and operators come from."
  type        = list(string)

  validation {
    condition     = !contains(var.client_cidrs, "0.0.0.0/0")
    error_message = "The signer is not for the whole internet: name the networks of its clients."
  }
}

variable "monitoring_security_group_ids" {
  description = "Prometheus: who scrapes 3000 (the enclave) and 9101 (the parent proxy)."
  type        = list(string)
  default     = []
}

variable "other_egress_cidrs" {
  description = "Where parents reach on 443 beside the endpoints here: KMS of other regions, whose custody keys they call, by NAT."
  type        = list(string)
  default     = []
}

variable "ami_id" {
  description = "An Amazon Linux 2023 on which parent-proxy/deploy/README.md was followed."
  type        = string
}

variable "instance_type" {
  description = "With enclave support, and at least four vCPUs: two stay with the parent."
  type        = string
  default     = "m7i.xlarge"
}

variable "parents" {
  description = "How many parents run, each with one enclave; 0 until there is an image."
  type        = number
  default     = 2

  validation {
    condition     = var.parents >= 0
    error_message = "A number of parents is 0 or more."
  }
}

variable "user_data" {
  description = "What a parent does at its first start, if the image of the machine is not complete. No secrets: everybody on the instance reads it."
  type        = string
  default     = null
}

variable "with_ssm" {
  description = "Operators reach parents by Session Manager. Whoever may do so is root there: see docs/security.md, Against the parent."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
