"""What the player says of a tool that asks something else in another pass."""

from itertools import count

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing import WITH_TASKS, NotReplayable, Player, QuestionChanged


def changing() -> Server:
    nondeterministic, passes = Server("nondeterministic"), count(1)

    @nondeterministic.tool
    def dial(ctx: Context) -> bool:
        return ctx.elicit("sure", f"It is {next(passes)} o'clock. Sure?", bool)

    @nondeterministic.tool(task="required")
    def dial_later(ctx: Context) -> bool:
        ctx.run_as_task()
        return ctx.elicit("sure", f"It is {next(passes)} o'clock. Sure?", bool)

    return nondeterministic


def test_a_changed_question_causes_a_warning_with_both_texts():
    asked = Player(changing()).call("dial")
    with pytest.warns(QuestionChanged, match="question 'sure' changed") as heard:
        asked.answer(sure=True)
    text = str(heard[0].message)
    assert '-    "message": "It is 1 o\'clock. Sure?"' in text
    assert '+    "message": "It is 2 o\'clock. Sure?"' in text
    assert heard[0].filename == __file__


def test_a_changed_question_of_a_task_causes_a_warning():
    task = Player(changing(), WITH_TASKS).call("dial_later").task
    with pytest.warns(QuestionChanged, match=r"It is \d o'clock"):
        task.answer(sure=True)


@pytest.mark.parametrize("tool", ["dial", "dial_later"])
def test_a_replay_with_another_question_shows_both_questions(tool):
    play = Player(changing(), WITH_TASKS, always_replay=True)
    with pytest.raises(NotReplayable, match=r"(?s)\n-.*It is 1 o'clock.*\n\+.*It is 2 o'clock"):
        _ = play.call(tool).task


def test_a_replay_that_raises_has_the_exception_as_its_cause():
    broken, passes = Server("broken"), count(1)

    @broken.tool
    def once(ctx: Context) -> bool:
        if next(passes) > 1:
            raise ValueError
        return ctx.elicit("sure", "Sure?", bool)

    with pytest.raises(NotReplayable, match=r"asked sure, .*raised ValueError") as failure:
        Player(broken, always_replay=True).call("once")
    assert isinstance(failure.value.__cause__, ValueError)
