"""What `make catalog` writes: the front door's catalog, manifests of skills, and the edge's routes."""
