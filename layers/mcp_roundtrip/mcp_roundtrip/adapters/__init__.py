"""Event sources: parse a Lambda event into an HttpRequest, format an HttpResponse for the source.

`detect` finds the source of an event, and `event_formats` has the adapter of each.
"""
