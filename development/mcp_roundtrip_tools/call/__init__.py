"""Call a tool from the terminal: `make call`. Standard output has only the result; stderr the questions."""
