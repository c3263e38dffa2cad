"""How a sandbox is made and retired. Each step is safe to repeat."""
