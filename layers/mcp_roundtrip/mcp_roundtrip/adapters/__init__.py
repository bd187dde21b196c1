"""One module per event source: its event becomes an HttpRequest, an HttpResponse becomes its answer."""
