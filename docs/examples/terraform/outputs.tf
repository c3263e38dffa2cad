output "name" {
  value = terraform_data.result.output.name
}

output "path" {
  description = "Where hosts of the site see it."
  value       = terraform_data.result.output.path
}

output "client" {
  description = "The Perforce client; empty for builds."
  value       = terraform_data.result.output.client
}

output "p4port" {
  value = terraform_data.result.output.p4port
}

output "change" {
  description = "The change of its contents when it was created."
  value       = terraform_data.result.output.change
}
