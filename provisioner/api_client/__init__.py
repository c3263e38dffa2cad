"""What the wheel cloneyard-client has: programs for other machines, over the API."""
