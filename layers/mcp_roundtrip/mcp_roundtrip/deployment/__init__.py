"""The settings of a deployment, the ports that they create, and the cold start."""
