"""The page and the view on which a user answers the questions of a call.

`fields` makes fields from a `requestedSchema` and reads their values, `posted_form` makes the form of several
questions and reads answers from a form body, `controls` and `page` render the page with `page.css`.
`view.html` is the view (MCP Apps), and `form.js` its form, which the local console shows, too.
"""
