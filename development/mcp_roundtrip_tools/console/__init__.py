"""The console: a web page of `make run` that shows and drives the running template, and the API behind it.

- `console`: answers the requests to the console's port; `guard`: refuses those that other pages cause
- `pages`: the files in `web/`, and the headers of every response
- `routes`: the table of the API; `requests`: reads one request, and the errors of the API
- `application`, `states`, `tasks`, ...: what each route answers

Nothing here is on the path of a request to the template's own routes.
"""
