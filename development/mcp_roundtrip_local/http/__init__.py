"""HTTP/1.1 on 127.0.0.1: the server, its messages, and what web pages may not do."""
