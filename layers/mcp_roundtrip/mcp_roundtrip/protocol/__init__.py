"""The Model Context Protocol, revision 2026-07-28, as pure functions over JSON values."""
