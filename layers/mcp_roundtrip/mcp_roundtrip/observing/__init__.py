"""Log lines, metrics, traces and audit records."""
