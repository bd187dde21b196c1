"""What a deployment tells about its requests: log lines, metrics, traces and audit records."""
