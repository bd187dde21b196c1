"""The HTTP API in front of the functions, as API Gateway provides it."""
