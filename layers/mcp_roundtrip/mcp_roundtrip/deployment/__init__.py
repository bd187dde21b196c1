"""What a deployment has: its settings, what they create, and what an environment does at its start."""
