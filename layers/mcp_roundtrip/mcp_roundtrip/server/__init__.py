"""Serves MCP requests from any event source. A request passes each module once:

1. `entry.handler` turns the Lambda event into an HttpRequest, and creates the ports and the Invocation.
2. `endpoint` receives the request. An exception of any later step becomes a response here.
3. `admission` checks what does not depend on the features, and returns a RequestContext. It also holds the
   checks that steps 4 and 5 call, so that all of them stand in one table.
4. `tools`, `prompts`, `resources`, `completions`, `listing`, `discovery` and `task_methods` have the handlers
   of the methods. The handler of a call finds the feature, and builds a FeatureCall.
5. `round` opens the state, has `execution` run the function once, and builds the Reply. `errors` maps an
   exception, and `task_creation` stores a call that becomes a task.
6. `responses` writes the Reply as an HttpResponse, and logs the request.

A worker runs the function of a task with `task_runner` and `execution`. `legacy` has the handlers for clients
that open with `initialize`. All modules share the types of `model`, `options` and `invocation`.
"""
