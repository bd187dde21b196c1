"""From a decoded request to a response: the registry of tools, and what answers each method."""
