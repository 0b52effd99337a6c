variable "administrators" {
  description = "Roles or users of this key's own account that may change its policy. They decrypt nothing."
  type        = list(string)

  validation {
    condition     = length(var.administrators) > 0
    error_message = "Name at least one administrator: the key could be changed by nobody."
  }
  validation {
    condition     = alltrue([for arn in var.administrators : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "An administrator is the ARN of a role or a user: not the account's root, and no session."
  }
}

variable "signers" {
  description = "Who decrypts with the key: the parents' role (output parent_role_arn of the module signer), or that of a plain service."
  type        = list(string)

  validation {
    condition     = length(var.signers) > 0
    error_message = "Name at least one signer: nobody could call the key."
  }
  validation {
    condition     = alltrue([for arn in var.signers : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "A signer is the ARN of a role or a user."
  }
  validation {
    condition     = length(setintersection(var.signers, var.administrators)) == 0
    error_message = "Who administers the key and calls it could open the master key: name another."
  }
}

variable "table_users" {
  description = "The user whose credentials are sealed for the enclaves (output table_user_arns of the module signer): it encrypts shares in the phases first-boot and rotation."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.table_users : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "A table user is the ARN of a user or a role."
  }
  validation {
    condition     = length(setintersection(var.table_users, concat(var.signers, var.administrators))) == 0
    error_message = "The table user is neither a parent's role nor an administrator."
  }
}

variable "unsafe_parents_encrypt" {
  description = "The parents encrypt the shares: for enclaves whose parents write the tables."
  type        = bool
  default     = false
}

variable "images" {
  description = "The enclave images that may decrypt: of each the measurements of its pcrs.json. During a rotation the old one and the new one; empty until the first image is built, and then nobody decrypts."
  type = list(object({
    PCR0  = string
    PCR16 = string
    PCR17 = string
  }))

  validation {
    condition = alltrue(flatten([
      for image in var.images : [for value in [image.PCR0, image.PCR16, image.PCR17] : can(regex("^[0-9a-f]{96}$", value))]
    ]))
    error_message = "A register is 96 hex digits in lower case."
  }
  validation {
    condition     = alltrue([for image in var.images : !can(regex("^0+$", image.PCR0))])
    error_message = "A PCR0 of zeros is what an enclave in debug mode has: it would accept any image."
  }
}

variable "unsafe_without_attestation" {
  description = "For a signer that runs in no enclave: whoever has its role decrypts."
  type        = bool
  default     = false

  validation {
    condition     = !var.unsafe_without_attestation || length(var.images) == 0
    error_message = "Name the images that may decrypt, or say unsafe_without_attestation for a signer that runs in no enclave; never both."
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

variable "network" {
  description = "The genesis validators root of the network, 0x and 64 hex digits."
  type        = string

  validation {
    condition     = can(regex("^0x[0-9a-f]{64}$", var.network))
    error_message = "The network is the genesis validators root, 0x and 64 hex digits in lower case."
  }
}

variable "deployment_id" {
  description = "signer_state.deployment_id of the configuration."
  type        = string

  validation {
    # Terraform's expressions repeat at most 1000 times, and one that it cannot read matches nothing.
    condition     = can(regex("^[A-Za-z0-9._:/-]+$", var.deployment_id)) && length(var.deployment_id) <= 1024
    error_message = "A deployment id has up to 1024 letters, digits and . _ : / -"
  }
}

variable "sealers" {
  description = "Who may encrypt table credentials for the enclaves, and nothing else. Empty when nobody does at present."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.sealers : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))])
    error_message = "A sealer is the ARN of a role or a user: not everybody, and no account."
  }
}

variable "multi_region" {
  description = "Whether the key can have replicas in other regions. It cannot be changed later."
  type        = bool
  default     = false
}

variable "replica_of" {
  description = "Makes this key a replica of a multi-region key of another region: { arn = … }. Every replica has a policy of its own. An object, because it is known to be there before the primary key has an ARN."
  type        = object({ arn = string })
  default     = null
}

variable "tags" {
  description = "Tags of the key."
  type        = map(string)
  default     = {}
}
