"""What a text for people names. Its sentences are compared in the table of messages only."""

import re


def words(text: object) -> set[str]:
    """Return the words of a text or an exception, without the punctuation and quotes around them."""
    return {word.strip(".:?!…") for word in re.split(r"[\s\"'`,;()]+", str(text))}
