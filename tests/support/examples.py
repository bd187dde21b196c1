"""Names, arguments and answers of the examples in `functions/`."""

WORK_ITEMS, APPROVAL = "/tools/work_items", "/tools/approval"

HYDERABAD = {"location": "Hyderabad"}
TOKYO = {"location": "Tokyo"}
RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}

DOCUMENT = {
    "text": (
        "Each request may land on a different execution environment. The server keeps nothing between "
        "requests. What a tool has learned travels inside requestState. The client sends requestState back "
        "with its answers. The next environment replays the tool against it."
    ),
    "uri": "file:///home/ada/engine/notes.md",
}
PRICES = "provision://prices"

ORDERS = {"name": "orders"}
EXPENSE = {"purpose": "A week in the library", "amount_eur": 1250}

# A well-formed token without a valid signature.
FORGED = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImZvcmdlZCIsInR5cCI6Im1jcC1ycytqd3QifQ.e30." + "A" * 86
