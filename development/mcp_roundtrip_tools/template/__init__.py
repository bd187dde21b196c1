"""Reads a SAM template and resolves its intrinsic functions."""
