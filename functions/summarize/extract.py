"""An extractive summary, for clients without sampling."""

import re
from collections import Counter


def sumbasic(text: str, limit: int) -> str:
    """Return the `limit` sentences that cover the frequent words best, in their order.

    SumBasic (Nenkova and Vanderwende 2005): select the sentence with the highest mean word probability, then
    square the probabilities of its words, so that the next sentence adds something new.
    """
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if words(part)]
    counts = Counter(word for sentence in sentences for word in words(sentence))
    probability = {word: count / counts.total() for word, count in counts.items()}
    chosen: set[int] = set()
    while len(chosen) < min(limit, len(sentences)):
        left = [number for number in range(len(sentences)) if number not in chosen]
        best = max(left, key=lambda number: weight(words(sentences[number]), probability))
        chosen.add(best)
        probability |= {word: probability[word] ** 2 for word in set(words(sentences[best]))}
    return " ".join(sentences[number] for number in sorted(chosen)) or text.strip()


def words(sentence: str) -> list[str]:
    """Return the words of four letters or more; most shorter words are function words."""
    return re.findall(r"\w{4,}", sentence.casefold())


def weight(words: list[str], probability: dict[str, float]) -> float:
    return sum(probability[word] for word in words) / len(words)
