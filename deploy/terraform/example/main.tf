# Three custody keys, any two of which open the master key, and a fleet of two parents. Here the keys are of one
# account, in three regions; give each a provider of an account of its own before you trust it with anything.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

provider "aws" {
  region = "eu-central-1"
}

provider "aws" {
  alias  = "second"
  region = "eu-west-1"
}

provider "aws" {
  alias  = "third"
  region = "us-east-1"
}

variable "administrator" {
  description = "A role of the keys' account that may change their policies."
  type        = string
}

variable "phase" {
  description = "What the signers may do now: first-boot, running or rotation, as for `strongroom setup iam --phase`."
  type        = string
  default     = "first-boot"
}

variable "pcrs_files" {
  description = "pcrs.json of each image that may decrypt (strongroom eif build); none before there is an image."
  type        = list(string)
  default     = []
}

variable "parents" {
  description = "How many parents run: 0 until the image exists and its pcrs.json is in pcrs_files."
  type        = number
  default     = 0
}

variable "vpc_id" {
  description = "The VPC of the parents, their balancer and the endpoints of KMS and DynamoDB."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of that VPC, in several zones."
  type        = list(string)
}

variable "route_table_ids" {
  description = "Route tables of these subnets: the endpoint of DynamoDB is entered into them."
  type        = list(string)
}

variable "ami_id" {
  description = "An Amazon Linux 2023 on which parent-proxy/deploy/README.md was followed."
  type        = string
}

locals {
  deployment_id = "mainnet-eu"
  key = {
    administrators = [var.administrator]
    signers        = [module.signer.parent_role_arn]
    table_users    = module.signer.table_user_arns
    images         = [for file in var.pcrs_files : jsondecode(file(file)).measurements]
    # mainnet's genesis validators root
    network = "0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95"
  }
  custody_key_arns = [module.first.arn, module.second.arn, module.third.arn]
}

module "first" {
  source         = "../custody-key"
  administrators = local.key.administrators
  signers        = local.key.signers
  table_users    = local.key.table_users
  images         = local.key.images
  network        = local.key.network
  deployment_id  = local.deployment_id
  phase          = var.phase
}

module "second" {
  source         = "../custody-key"
  providers      = { aws = aws.second }
  administrators = local.key.administrators
  signers        = local.key.signers
  table_users    = local.key.table_users
  images         = local.key.images
  network        = local.key.network
  deployment_id  = local.deployment_id
  phase          = var.phase
}

module "third" {
  source         = "../custody-key"
  providers      = { aws = aws.third }
  administrators = local.key.administrators
  signers        = local.key.signers
  table_users    = local.key.table_users
  images         = local.key.images
  network        = local.key.network
  deployment_id  = local.deployment_id
  phase          = var.phase
}

module "signer" {
  source           = "../signer"
  deployment_id    = local.deployment_id
  custody_key_arns = local.custody_key_arns
  phase            = var.phase
  parents          = var.parents
  vpc_id           = var.vpc_id
  subnet_ids       = var.subnet_ids
  route_table_ids  = var.route_table_ids
  client_cidrs     = ["10.0.0.0/8"]
  # The keys of the other two regions are called by NAT.
  other_egress_cidrs = ["0.0.0.0/0"]
  ami_id             = var.ami_id
}

output "ceremony_kms_keys" {
  description = "For ceremony.yaml."
  value       = yamlencode({ kms_threshold = 2, kms_keys = [for arn in local.custody_key_arns : { arns = [arn] }] })
}

output "enclave_yaml" {
  description = "strongroom.yaml for the image and its parent, to complete."
  value       = module.signer.enclave_yaml
}

output "signer_url" {
  description = "The balancer, for operators' profiles and for the tunnels of validator clients."
  value       = module.signer.signer_url
}
