"""The AWS services that functions call under `make run`."""
