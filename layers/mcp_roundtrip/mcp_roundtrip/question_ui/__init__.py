"""The HTML page on which a user answers the questions of a call: forms, answers and markup, all pure.

`fields` makes fields from a `requestedSchema` and reads their values, `form` makes the form of several
questions and reads their answers, `posted` parses a form body, `html` renders the page.
"""
