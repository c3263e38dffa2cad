variable "server" {
  type        = string
  description = "Cloneyard's address."

  validation {
    condition     = can(regex("^https?://[^/]+", var.server))
    error_message = "Give an address such as https://cloneyard.example.com."
  }
}

variable "template" {
  type        = string
  description = "Name or id of a template."
}

variable "name" {
  type        = string
  description = "How the workspace's name begins; eight characters follow."

  validation {
    condition     = can(regex("^[a-z]([a-z0-9]|-[a-z0-9]){0,30}$", var.name)) && length(var.name) <= 31
    error_message = "A name has up to 31 lower-case letters, digits and single hyphens."
  }
}

variable "purpose" {
  type        = string
  default     = "development"
  description = "It decides the client, and what becomes of the contents: see docs/api.md."

  validation {
    condition     = contains(["build", "ci", "ci-edit", "development"], var.purpose)
    error_message = "A purpose is build, ci, ci-edit or development."
  }
}

variable "lease_hours" {
  type        = number
  default     = 24
  description = "From the creation, and from each change of this."

  validation {
    condition     = var.lease_hours >= 1 && floor(var.lease_hours) == var.lease_hours
    error_message = "Give whole hours, one or more."
  }
}

variable "unsubmitted" {
  type        = string
  default     = "stop"
  description = "What destroy does with unsubmitted work: stop, rescue or discard."

  validation {
    condition     = contains(["stop", "rescue", "discard"], var.unsubmitted)
    error_message = "Choose stop, rescue or discard."
  }
}

variable "snapshot" {
  type        = string
  default     = ""
  description = "Name or id; the template's default if empty."
}

variable "site" {
  type        = string
  default     = ""
  description = "Where it is cloned; your home site if empty."
}

variable "timeout" {
  type        = string
  default     = "10min"
  description = "How long to wait until it is ready."
}

variable "cloneyard" {
  type        = string
  default     = "cloneyard"
  description = "The command line: a name on the PATH, or a path."
}

variable "results_dir" {
  type        = string
  default     = ".cloneyard"
  description = "Where the server's answers are written, before the state keeps them."
}
