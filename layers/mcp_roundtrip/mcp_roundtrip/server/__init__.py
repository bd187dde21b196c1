"""Serves MCP requests, whatever event source delivered them. A request passes each module once:

1. `entry.handler` turns the Lambda event into an HttpRequest, and creates the ports and the Invocation.
2. `endpoint` receives the request, and is the only module that turns an exception into a response.
3. `admission` runs every check, in the order of its table, and returns a RequestContext.
4. `tools`, `prompts`, `resources`, `completions`, `listing`, `discovery` and `task_methods` have the handlers
   of the methods. A handler of a call builds a FeatureCall.
5. `round` opens the state, runs the function once against the journal, and builds the Reply. An exception is
   mapped by `errors`, and a call that becomes a task is stored by `task_methods`.
6. `responses` writes the Reply as an HttpResponse, and logs the request.

A worker runs the function of a task with `task_runner`, which uses the same pass. `legacy` has the handlers
for clients that open with `initialize`. The modules share the types of `model`, `options` and `invocation`.
"""
