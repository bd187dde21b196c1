"""What `make catalog` writes: the front door's catalog, manifests of skills, and the edge's routes.

- `__main__`: the command; `catalog`: the catalog of functions
- `skill_catalog`, `skill_folders`, `skill_frontmatter`: skills, from their folders to their entries
- `edge_routes`: the files of platform/edge/, from the catalog
"""
