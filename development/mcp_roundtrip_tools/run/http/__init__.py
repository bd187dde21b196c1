"""The HTTP/1.1 server on 127.0.0.1, its messages, and the protection from web pages."""
