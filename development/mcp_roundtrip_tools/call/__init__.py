"""Call a tool from the terminal, and answer its questions there: `make call`.

Questions, progress and errors go to standard error, so that standard output has nothing but the result.
"""
