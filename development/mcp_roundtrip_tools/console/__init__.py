"""The console: a web page of `make run` that shows and drives the running template, and the API behind it.

- `console`: answers the requests to the console's port, also with the files in `web/`
- `admission`: which requests are refused, and what one to the API contains; `running_application`, `states`,
  `tasks`, ...: what answers them

Nothing here is on the path of a request to the template's own routes.
"""
