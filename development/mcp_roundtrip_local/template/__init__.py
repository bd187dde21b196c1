"""Reads template.yaml and resolves what running it needs."""
