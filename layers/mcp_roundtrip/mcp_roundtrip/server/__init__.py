"""Serves MCP requests from any event source. A request passes each module once:

1. `entry.handler` turns the Lambda event into an HttpRequest, and creates the ports and the Invocation.
2. `endpoint` receives the request. An exception of any later step becomes a response here.
3. `admission` checks what does not depend on the features, and returns a RequestContext. It also holds the
   checks that steps 4 and 5 call, so that all of them stand in one table.
4. `entry.server` has the handler of each method. That of a call finds the feature in `tools`, `prompts` or
   `resources`, builds a FeatureCall, and runs it.
5. `rounds` runs one round of the call: it loads the journal from a carrier (`carriers`), has `round` run the
   function once and build the Reply, or saves the journal and asks through a presenter (`presenters`). The
   tables of `plan` decide which carrier and which presenter. `errors` maps an exception.
6. `responses` writes the Reply as an HttpResponse, and logs the request.

A worker runs the function of a task with `task_runner` and `round`. `legacy` has the methods of clients
that open with `initialize`. All modules share the types of `model`, `feature`, `options` and `invocation`.
"""
