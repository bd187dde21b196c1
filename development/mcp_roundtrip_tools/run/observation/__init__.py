"""What happened while the template ran: requests, invocations, calls to AWS services, and printed lines."""
