"""The console: a web page of `make run` that shows and drives the running template, and the API behind it.

- `console`: decides which requests are the console's; `guard`: refuses those that pages of other sites cause
- `pages`: the files in `web/`; `security_headers`: the headers of every response
- `api`: the table of the API's routes; `requests`: reads one request, and the errors of the API
- `application`, `states`, `tasks`, ...: what each route answers

Nothing here is on the path of a request to the template's own routes.
"""
