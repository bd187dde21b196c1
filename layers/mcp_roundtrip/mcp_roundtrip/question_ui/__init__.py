"""The page and the view on which a user answers the questions of a call.

`fields` makes fields from a `requestedSchema` and reads their values, `posted_form` makes the form of several
questions and reads their answers from a form body, `controls` and `page` render the page with `page.css`.
`view.html` is the document of the view (MCP Apps), and `form.js` is its form, which the console of the local
runner shows, too.
"""
