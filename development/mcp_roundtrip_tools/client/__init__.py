"""What commands that call a server share: the official client, what responses mean, and terminal text."""
