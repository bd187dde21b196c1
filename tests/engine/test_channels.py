"""Which channel carries a question, and what a pass does with questions of several channels."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import AsyncContext, Context, Elicit, ElicitUrl, ListRoots, MissingClientCapability, Sample
from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip.engine.outcomes import Done, Failed, NeedsInput, Outcome, run_function
from mcp_roundtrip.engine.question_channels import ORDER, Channel, Channels, ClientInputs, Question
from mcp_roundtrip.protocol.capabilities import declares, missing_capabilities
from mcp_roundtrip.server.options import Fallback
from support.passes import AsyncPasses, Passes, accept

DECLARED: Sequence[Mapping[str, Any]] = (
    {},
    {"elicitation": {}},
    {"elicitation": {"url": {}}},
    {"elicitation": {"form": {}, "url": {}}},
    {"sampling": {}, "roots": {}},
    {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
)
LADDERS = [chosen for size in range(5) for chosen in permutations(get_args(Fallback), size)]

QUESTIONS: Mapping[str, Callable[[str], Question[Any]]] = {
    "form": lambda key: Elicit(key, "How many?", int),
    "form with a default": lambda key: Elicit(key, "How many?", int, default=7),
    "form for the user only": lambda key: Elicit(key, "How many?", int, user_only=True),
    "confirmation": lambda key: Elicit(key, "Really?", bool),
    "confirmation with a default": lambda key: Elicit(key, "Really?", bool, default=False),
    "url": lambda key: ElicitUrl(key, "Sign in", "https://x.test/", lambda: False),
    "url with a default": lambda key: ElicitUrl(key, "Sign in", "https://x.test/", lambda: False, None),
    "sampling": lambda key: Sample(key, "Summarize.", 10),
    "roots": lambda key: ListRoots(key, default=()),
}

USER_ONLY = {"form for the user only", "confirmation", "confirmation with a default"}

declared = st.sampled_from(DECLARED)
ladders = st.sampled_from(LADDERS)
question_names = st.sampled_from(sorted(QUESTIONS))


def can_carry(channel: Channel, name: str, capabilities: Mapping[str, Any], *, needs_user: bool) -> bool:
    """Return whether the channel can carry the question, as the documentation says it."""
    question = QUESTIONS[name]("key")
    match channel:
        case "client":
            return not missing_capabilities(capabilities, question.needs())
        case "default":
            return "default" in name or name == "roots"
        case "model":
            return question.method == "elicitation/create" and not name.startswith("url") and not needs_user
    return question.method == "elicitation/create"


def choose(channels: Channels, name: str, *, needs_user: bool) -> Channel | None:
    question = QUESTIONS[name]("key")
    return channels.choose(question.needs(), has_default=question.has_default, needs_user=needs_user)


@given(declared, ladders, question_names, st.booleans())
def test_a_question_takes_the_first_channel_that_can_carry_it(capabilities, ladder, name, needs_user):
    channels: list[Channel] = ["client", *ladder]
    expected = [each for each in channels if can_carry(each, name, capabilities, needs_user=needs_user)]
    chosen = choose(Channels(capabilities, ladder), name, needs_user=needs_user)
    assert chosen == (expected[0] if expected else None)


CAPABILITIES = ["elicitation", "elicitation.form", "elicitation.url", "sampling", "roots"]


@given(declared, ladders, st.sampled_from(CAPABILITIES))
def test_a_capability_is_supported_where_such_a_question_reaches_somebody(capabilities, ladder, capability):
    path = tuple(capability.split("."))
    carriers = {
        "elicitation": {"app", "page", "model"},
        "elicitation.form": {"app", "page", "model"},
        "elicitation.url": {"app", "page"},
    }.get(capability, set())
    expected = declares(capabilities, path) or not carriers.isdisjoint(ladder)
    assert Channels(capabilities, ladder).supports(path) is expected


def sync_tool(names: Sequence[str]) -> Callable[[Context], Any]:
    def tool(ctx: Context) -> Any:
        return ctx.ask(*(QUESTIONS[name](f"q{number}") for number, name in enumerate(names)))

    return tool


def async_tool(names: Sequence[str]) -> Callable[[AsyncContext], Any]:
    async def tool(ctx: AsyncContext) -> Any:
        return await ctx.ask(*(QUESTIONS[name](f"q{number}") for number, name in enumerate(names)))

    return tool


def summary(outcome: Outcome) -> Any:
    """Return what does not depend on the function: the questions of a pass, and their channel."""
    match outcome:
        case NeedsInput(requests, journal, channel):
            assert requests.keys() == journal.outstanding.keys()
            return channel, sorted(requests)
        case Failed(MissingClientCapability() as error):
            return error.required, sorted(error.questions)
        case Done(value):
            return tuple(value)
    return outcome


several = st.lists(question_names, min_size=1, max_size=4)


@given(several, declared, ladders)
def test_a_pass_asks_through_one_channel_and_lists_only_what_it_asks(names, capabilities, ladder):
    outcome = Passes(sync_tool(names), capabilities=capabilities, fallbacks=ladder)()
    # In one `ask`, a question for the user only keeps the model from answering any other form.
    needs_user = not USER_ONLY.isdisjoint(names)
    chosen = {
        f"q{number}": choose(
            Channels(capabilities, ladder), name, needs_user=needs_user and not name.startswith("url")
        )
        for number, name in enumerate(names)
    }
    if None in chosen.values():
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, MissingClientCapability)
        assert outcome.error.questions.keys() == {key for key, channel in chosen.items() if channel is None}
        return
    asked = [channel for channel in ORDER if channel in chosen.values()]
    if not asked:
        assert isinstance(outcome, Done)
        return
    assert summary(outcome) == (asked[0], sorted(key for key, each in chosen.items() if each == asked[0]))


@given(several, declared, ladders)
def test_sync_and_async_tools_have_the_same_outcome(names, capabilities, ladder):
    given_options: Any = {"capabilities": capabilities, "fallbacks": ladder}
    in_sync = summary(Passes(sync_tool(names), **given_options)())
    assert summary(AsyncPasses(async_tool(names), **given_options)()) == in_sync


def sample_and_ask(ctx: Context) -> Any:
    return ctx.ask(Sample("summary", "Summarize.", 10), Elicit("size", "How large?", int))[1]


def test_questions_of_later_channels_are_asked_once_the_first_are_answered():
    passes = Passes(sample_and_ask, capabilities={"sampling": {}}, fallbacks=("page",))
    assert summary(passes()) == ("client", ["summary"])
    sampled = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
    assert summary(passes(summary=sampled)) == ("page", ["size"])
    assert passes(size=accept(3)) == Done(3)


def test_an_answer_to_a_question_that_was_withheld_does_not_count():
    passes = Passes(sample_and_ask, capabilities={"sampling": {}}, fallbacks=("page",)).begun()
    assert summary(passes(size=accept(3))) == ("client", ["summary"])


def run_with_model(
    tool: Callable[[Context], Any], channels: Channels, answers: Mapping[str, Any]
) -> tuple[Outcome, Passes]:
    passes = Passes(tool, capabilities=channels.declared, fallbacks=channels.fallbacks)
    run = passes.make_run()
    run.inputs = ClientInputs({}, is_resumed=False, find_channels=lambda: channels, model_responses=answers)
    return run_function(tool, {"ctx": Context(run, passes.info)}, run), passes


@given(several, declared, ladders)
def test_a_model_answers_only_questions_that_go_through_it(names, capabilities, ladder):
    values = [True if "confirmation" in name else 3 for name in names]
    answers = {f"q{number}": accept(value) for number, value in enumerate(values)}
    channels = Channels(capabilities, ladder)
    outcome, passes = run_with_model(sync_tool(names), channels, answers)
    assert passes.run is not None
    answered = {entry.key for entry in passes.run.to_journal().entries if entry.kind is Kind.ANSWER}
    for number, name in enumerate(names):
        if f"q{number}" in answered:
            assert USER_ONLY.isdisjoint(names), "a form of this ask is for the user only"
            assert choose(channels, name, needs_user=False) == "model"
    if isinstance(outcome, NeedsInput):
        assert answered.isdisjoint(outcome.requests)
