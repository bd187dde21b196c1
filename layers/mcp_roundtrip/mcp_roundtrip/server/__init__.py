"""Serves MCP requests from any event source. A request goes through these modules in this order:

1. `entry.handler` turns the Lambda event into an HttpRequest, and creates the ports and the Invocation.
2. `endpoint` receives the request, writes the response, and logs how the request ended. An exception of any
   later step becomes a response here.
3. `admission` checks what does not depend on the features, and returns a RequestContext. It also holds the
   checks that steps 4 and 5 call, so that all of them stand in one table.
4. `entry.server` has the handlers of calls, and `discover_and_initialize` those of other methods. The handler
   of a call finds the feature in `tools` or `prompts_and_resources`, builds a FeatureCall, and runs it.
5. `call_rounds` runs one round of the call: it loads the journal from a carrier, has `pass_and_reply` run the
   function once and build the Reply, or saves the journal and asks (`question_presenters`, for each channel).
   The carriers are `state_carrier`, `parked_carrier` and `task_carrier`; a call may also be made again and
   start from its beginning. `call_plan` decides which. `call_errors` maps an exception.

A worker runs the function of a task with `stored_call_passes` and `pass_and_reply`.

Clients that open with `initialize` (2025-06-18, 2025-11-25) are served by the same modules, and no session is
stored: `discover_and_initialize` has their methods and adapts the results, `call_rounds` adapts the calls.
All modules share the types of `request_types`, `options` and `lambda_invocation`.
"""
