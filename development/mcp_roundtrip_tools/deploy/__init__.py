"""Build and deploy template.yaml to an environment of samconfig.toml."""
