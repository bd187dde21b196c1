from urllib.parse import urlsplit

import pytest

from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest, RuntimeApi
from support.sam_applications import write_application
from support.served_application import serve

pytest_plugins = ["support.browser"]

TEMPLATE = """
    Resources:
      Api:
        Type: AWS::Serverless::HttpApi
        Properties:
          CorsConfiguration:
            AllowOrigins: ["http://app.example"]
            AllowMethods: [POST]
            AllowHeaders: [content-type]
      F:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          CodeUri: f
          Events: {E: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}}
    """

ATTACK = """
    <script type="module">
      await ready;
      const simple = { method: "POST", body: '{"do": "pay"}', headers: { "content-type": "text/plain" } };
      const signed = { authorization: "AWS4-HMAC-SHA256 Credential=x/", "content-type": "application/json" };
      const console_client = { "x-console": "1", "content-type": "application/json" };
      const tried = [];
      const attempt = (promise) => tried.push(Promise.resolve(promise).catch(() => null));
      for (const url of given.urls) {
        attempt(fetch(url, { ...simple, mode: "no-cors" }));
        attempt(fetch(url, { ...simple, mode: "no-cors", credentials: "include" }));
        attempt(fetch(url, simple));
        attempt(fetch(url, { ...simple, headers: signed }));
        attempt(fetch(url, { method: "PUT", body: "{}", headers: console_client }));
        attempt(fetch(url, { mode: "no-cors" }));
        attempt(fetch(url, { mode: "no-cors", referrerPolicy: "no-referrer" }));
        navigator.sendBeacon(url, "{}");
        for (const tag of ["img", "iframe", "script"]) {
          const element = document.createElement(tag);
          tried.push(new Promise((resolve) => { element.onload = element.onerror = resolve; }));
          if (tag === "iframe") element.name = url;
          else element.src = url;
          document.body.append(element);
        }
        const form = document.createElement("form");
        Object.assign(form, { action: url, method: "post", enctype: "text/plain", target: url });
        form.innerHTML = "<input name='{\\"do\\": \\"pay\\", \\"x\\": \\"' value='\\"}'>";
        document.body.append(form);
        form.submit();
      }
      await Promise.all(tried);
      window.done = true;
    </script>
    """


@pytest.fixture
def app(tmp_path):
    source = "def handler(event, context):\n    return 'reached'\n"
    with serve(write_application(tmp_path, TEMPLATE, {"f/app.py": source})) as app:
        yield app


@pytest.fixture
def runtime():
    api = RuntimeApi()
    api.pending.put((InvokeRequest("F", b"{}", request_id="id-1"), 1))
    yield api
    api.close()


def attacked(app, runtime):
    """Return requests with which a page could run a function or respond for one."""
    services = app.endpoints["AWS_ENDPOINT_URL"]
    runtime_url = f"http://{runtime.address}/2018-06-01/runtime"
    return [
        app.url("/mcp"),
        f"{services}/2015-03-31/functions/F/invocations",
        f"{services}/",
        runtime_url + "/invocation/next",
        runtime_url + "/invocation/id-1/response",
        runtime_url + "/init/error",
    ]


def console_urls(app):
    """Return requests of the console that run code, decrypt states, or show that it is there."""
    paths = ("api/invocations", "api/states", "api/activity", "index.html")
    return [f"{app.console_url}console/{path}" for path in paths]


def test_a_page_of_another_origin_cannot_invoke_a_function(app, runtime, visit):
    urls = [*attacked(app, runtime), *console_urls(app)]
    answers = visit("http://evil.example/", ATTACK, {"urls": urls})
    assert {url for _, url, _ in answers} >= set(urls)
    assert {method for method, _, _ in answers} >= {"GET", "POST"}
    # The gateway responds to the preflight and allows nothing.
    assert {status for method, _, status in answers if method != "OPTIONS"} == {403}
    assert app.recorder.invocations() == ()
    assert runtime.reports.empty()


def test_dns_rebinding_cannot_invoke_a_function(app, runtime, visit):
    # With DNS rebinding the browser treats page and server as one origin.
    gateway, invoke, *_, respond, _ = attacked(app, runtime)
    for url in (gateway, invoke, respond, console_urls(app)[0]):
        rebound = f"http://evil.example:{urlsplit(url).port}"
        answers = visit(rebound + "/page", ATTACK, {"urls": [rebound + urlsplit(url).path]})
        assert {method for method, _, _ in answers} >= {"GET", "POST"}
        assert {status for _, _, status in answers} == {421}
    assert app.recorder.invocations() == ()
    assert runtime.reports.empty()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_that_the_template_serves_cannot_use_the_console(app, visit, name):
    page = app.url("/report.html").replace("127.0.0.1", name)
    urls = [url.replace("127.0.0.1", name) for url in [*console_urls(app), f"{app.console_url}mcp"]]
    answers = visit(page, ATTACK, {"urls": urls})
    assert {url for _, url, _ in answers} >= set(urls)
    assert {status for method, _, status in answers if method != "OPTIONS"} <= {403, 404}
    assert app.recorder.invocations() == ()


ALLOWED = """
    <script type="module">
      await ready;
      const headers = { "content-type": "application/json" };
      const reply = await fetch(given.url, { method: "POST", body: "{}", headers });
      await fetch(given.url + "?read=" + await reply.text(), { method: "POST", body: "{}", headers });
      const own = { ...headers, "x-console": "1" };
      const post = { method: "POST", body: "{}", headers };
      const leak = (reply) => fetch(given.url + "?leak=" + reply.status, post);
      for (const url of given.console) {
        for (const method of ["GET", "PUT", "POST"]) {
          const body = method === "GET" ? undefined : "{}";
          await fetch(url, { method, body, headers: own }).then(leak).catch(() => null);
          await fetch(url, { method, body, headers }).then(leak).catch(() => null);
        }
        await fetch(url).then(leak).catch(() => null);
      }
      await fetch(given.url, { method: "POST", body: "{}", headers: own }).catch(() => null);
      window.done = true;
    </script>
    """


def test_a_page_of_an_allowed_origin_calls_and_reads_responses(app, visit):
    urls = {"url": app.url("/mcp"), "console": console_urls(app)}
    answers = visit("http://app.example/", ALLOWED, urls)
    posts = [(url, status) for method, url, status in answers if method == "POST"]
    # It may call the template's routes, and neither read nor use the console.
    assert posts == [(app.url("/mcp"), 200), (app.url("/mcp?read=reached"), 200)]
