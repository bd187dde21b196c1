"""What `make run` prints: a line for each request, the lines of functions below it, or JSON for scripts."""
