import pytest

from mcp_roundtrip_tools.run.api_gateway.routing import match_route
from mcp_roundtrip_tools.template.model import Route

ROUTES = [
    Route("ANY", "$default", "default"),
    Route("ANY", "/{proxy+}", "greedy"),
    Route("ANY", "/tools/{name}", "any_tool"),
    Route("POST", "/tools/{name}", "post_tool"),
    Route("GET", "/tools/weather", "weather"),
    Route("GET", "/files/{dir}/{rest+}", "files"),
]


@pytest.mark.parametrize(
    ("method", "path", "function", "parameters"),
    [
        ("GET", "/tools/weather", "weather", {}),
        ("POST", "/tools/weather", "post_tool", {"name": "weather"}),
        ("PUT", "/tools/weather", "any_tool", {"name": "weather"}),
        ("GET", "/files/a/b/c", "files", {"dir": "a", "rest": "b/c"}),
        ("GET", "/files/a/", "greedy", {"proxy": "files/a/"}),
        ("GET", "/tools/", "greedy", {"proxy": "tools/"}),
        ("GET", "/", "default", {}),
    ],
)
def test_the_most_specific_route_is_taken(method, path, function, parameters):
    found = match_route(ROUTES, method, path)
    assert found is not None
    assert (found[0].function, found[1]) == (function, parameters)
