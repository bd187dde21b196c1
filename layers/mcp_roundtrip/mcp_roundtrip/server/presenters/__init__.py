"""Presenters: how the questions of a call reach somebody who answers them, and what a result says meanwhile.

`client`    in the protocol's own input requests
`app`       in a form that the host shows (MCP Apps)
`page`      on a page of the endpoint, behind a link that the model passes on; and where a call stands
`model`     in a text that has the model ask
"""
