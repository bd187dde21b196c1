from mcp_roundtrip_tools.sam_local.command import next_command

FUNCTIONS = {"orders": "OrdersFunction", "weather": "WeatherFunction"}
OPTIONS = ["--env-vars", "events/live/env.json", "--docker-network", "mcp-1"]


def commands(*written):
    lines = next_command(written, FUNCTIONS.__getitem__, "mcp-1").splitlines()
    return [line.split()[3:] for line in lines if "local invoke" in line]


def test_the_first_round_of_an_event_and_the_second_are_named():
    assert commands("live/weather/alb/call.2.json", "live/orders/a.2.json", "live/weather/call.2.json") == [
        ["WeatherFunction", "-e", "events/weather/call.json", *OPTIONS],
        ["WeatherFunction", "-e", "events/live/weather/call.2.json", *OPTIONS],
    ]


def test_without_an_event_that_asks_the_options_are_named():
    assert commands() == [["FUNCTION", "-e", "EVENT", *OPTIONS]]
