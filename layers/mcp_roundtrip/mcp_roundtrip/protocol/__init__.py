"""The Model Context Protocol, revision 2026-07-28: pure functions over JSON values, headers and URIs."""
