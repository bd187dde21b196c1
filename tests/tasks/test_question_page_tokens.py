"""Links to the questions of tasks and parked calls: what they lead to, and which answers count."""

import json

import pytest

from mcp_roundtrip.tasks.model import CLIENT
from mcp_roundtrip.tasks.question_page_tokens import PAGE, QuestionLinks, link_to_item, new_token
from support.stored_tasks import StoredTasks, answer_link, outstanding

pytest_plugins = ["support.task_stores"]

TTL_MS = 60_000
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "How many?"}}
YES = {"action": "accept", "content": {"value": True}}
NO = {"action": "decline"}


class Waiting(StoredTasks):
    """A task that waits for two answers, and the token of the link to them."""

    def wait(self, channel=PAGE, **options):
        self.task = self.create(ttl_ms=TTL_MS, **options)
        self.table.dispatcher.sent.clear()
        self.token = self.park(self.task, outstanding({"size": FORM, "keep": FORM}, channel))
        return self

    def answer(self, **responses):
        return answer_link(self.links, self.token, responses)

    def found(self):
        return self.links.find(self.token)


@pytest.fixture
def table(task_store):
    return Waiting.over(task_store).wait()


def test_a_token_has_256_bits_and_no_character_that_a_url_escapes():
    token = new_token(lambda count: b"\xff" * count)
    assert token == "_" * 42 + "8"


def test_the_table_holds_the_digest_of_the_token_as_a_key_and_nothing_about_the_caller(table):
    item = link_to_item(table.token, table.task, "order", outstanding({"size": FORM}))
    assert table.token not in json.dumps(item)
    assert "alice" not in json.dumps(item)
    assert item["exp"] == table.task.expires_s


def test_an_answer_to_a_part_of_the_questions_stores_nothing(table):
    assert table.answer(size=YES, other=YES) == "incomplete"
    assert table.responses(table.task) == {}
    assert table.found().state == "open"


def test_a_link_does_not_answer_questions_of_the_client(task_store):
    table = Waiting.over(task_store).wait(CLIENT)
    assert table.answer(size=YES, keep=YES) == "answered"
    assert table.responses(table.task) == {}


def test_a_client_does_not_answer_questions_of_the_page(table):
    table.tasks.update(table.principal, table.task.task_id, {"size": YES, "keep": YES})
    assert table.responses(table.task) == {}


@pytest.mark.parametrize("state", ["expired", "ended"])
def test_a_link_expires_or_ends_with_its_task(table, state):
    if state == "expired":
        table.clock.advance(TTL_MS / 1000)
    else:
        table.cancel(table.task)
    assert table.found().state == state
    assert table.answer(size=YES, keep=YES) == state
    assert table.responses(table.task) == {}


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ("1", 1), ([], {}), (None, "")])
def test_answers_that_json_distinguishes_are_not_equal(table, one, other):
    replies = [
        table.answer(size=YES, keep={"action": "accept", "content": {"value": value}})
        for value in (one, other, one)
    ]
    assert replies == ["stored", "answered", "stored"]


def test_a_form_of_questions_one_of_which_has_an_answer_stores_nothing(table):
    found = table.found()
    table.tasks.store_responses(table.task.pk, {"size": NO}, channels=(PAGE,))

    class Stale(QuestionLinks):
        """The link as it was before another channel answered one question."""

        def _questions(self, link):
            return found

    assert answer_link(Stale(table.tasks), table.token, {"size": YES, "keep": YES}) == "incomplete"
    assert table.responses(table.task) == {"size": NO}
