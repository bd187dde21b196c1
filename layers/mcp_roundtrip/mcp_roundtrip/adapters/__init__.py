"""Event sources: parse a Lambda event into an HttpRequest, format an HttpResponse for the source.

`detect` finds the source of an event. The other modules each have the adapters of similar sources.
"""
