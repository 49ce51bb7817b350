"""What is asked now and what was asked then have one form where the task is one, in every language that we have."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.learning.test_hint_groups import memory, recalled

from muniment.learning.hinting.episode_words import episode_of
from muniment.learning.hinting.requests import request_of, task_form
from products import for_each

SAME = (
    ("Find order 7", "Hi, could you please find order 12?"),
    ("Find order 7.", "hello   find ORDER 9 !"),
    ("Find order 7", "FIND ORDER 8!!"),
    ("Find order 7", "Hey there, can you find order #A-9 for me, please? Thanks in advance!"),
    ("Find order 7", "Dear Anna Berg, I'd like you to find order 7. Thank you very much."),
    ("Find order 7", "Find, please, Order 7…"),
    ("Find order 7", "Sure. Great, find order 7"),
    ("Cancel the trip of Amsel, no. 4521", "Good morning! I want to cancel the trip of Mia Li, no. 9. Cheers!"),
    ("close the ledger of anna", "Close the ledger of Mia"),
    ("Bestellung 7 suchen", "Hallo zusammen, könntest du mir bitte Bestellung 12 suchen? Vielen Dank!"),
    ("Suche Bestellung 7", "Suche bitte Bestellung 9."),
    ("Die Bestellung von Frau Amsel stornieren", "Guten Tag, ich möchte die Bestellung von Frau Borg stornieren"),
    ("Chercher la commande 7", "Bonjour, pourriez-vous s'il vous plaît chercher la commande 8 ? Merci d'avance"),
    ("Buscar el pedido 7", "Hola, ¿podrías buscar el pedido 9, por favor? ¡Gracias!"),
    ("Cercare l'ordine 7", "Ciao, puoi cercare l’ordine 8 per favore? Grazie mille"),
    ("Procurar o pedido 7", "Olá, você poderia procurar o pedido 31, por favor?"),
    ("Bestelling 7 zoeken", "Hoi, kun je bestelling 9 zoeken alsjeblieft? Alvast bedankt"),
    ("Найдите заказ 7", "Здравствуйте, найдите, пожалуйста, заказ 8. Спасибо!"),
    ("查找订单107的状态", "你好，请帮我查找订单9的状态，谢谢"),
    ("注文107を探して", "こんにちは、注文9を探してください。"),
    ("주문 107을 찾아", "안녕하세요, 주문 9을 찾아 주세요"),
)
OTHER = (
    ("Find order 7", "Find customer 7"),
    ("Find Order 7", "Find Customer 7"),
    ("Cancel order 7", "Please don't cancel order 7"),
    ("Cancel order 7", "Could you not cancel order 7?"),
    ('Write "please" on the card', "Write on the card"),
    ("Write „bitte“ auf die Karte", "Write auf die Karte"),
    ("Storniere Bestellung", "Storniere Rechnung"),
    ("Suche Bestellung 7", "Suche Kunde 7"),
    ("Prüfe die Rechnung von Herrn Borg", "Prüfe die Mahnung von Herrn Borg"),
    ("Ship it with the Order", "Ship it with the Invoice"),
    ("Hello world in C", "World in C"),
    ("Thank Anna for order 7", "Find order 7"),
    ("Busca el pedido 7", "Cancela el pedido 7"),
    ("查找订单107的状态", "取消订单107"),
)
LONG = (
    "Look through the orders of the last quarter that were paid by invoice and not by card, and of those which came"
    " back within {} days, "
)


@for_each(("one", "other"), SAME)
def test_the_same_task_has_one_form_however_it_is_asked(one: str, other: str) -> None:
    assert task_form(one) == task_form(other)
    assert task_form(request_of(other)) == task_form(other), "what was stripped once is stripped"


@for_each(("one", "other"), OTHER)
def test_tasks_that_differ_have_two(one: str, other: str) -> None:
    assert task_form(one).whole != task_form(other).whole


@for_each("text", ["Hello!", "Please", "Thanks.", "谢谢", "", "7", "Hi there, thanks!"])
def test_a_text_that_is_courtesy_alone_stays(text: str) -> None:
    assert request_of(text) == text


@for_each("text", ["Thanks to Anna the ledger is closed", "Great Britain: list its orders",
                                  "Dearth of it",
                                  "Hello World program", "hello world in Rust", "Can Anna fly?", "Pleased to help",
                                  "Call please_wait() twice", "Yes or no?"])  # fmt: skip
def test_a_word_that_begins_like_a_courtesy_is_none(text: str) -> None:
    assert request_of(text) == text


def test_a_long_request_is_found_by_all_of_it() -> None:
    """An episode tells the first 110 characters, and is of the form of the whole."""
    refund, count = LONG.format(30) + "refund the dearest.", LONG.format(7) + "count the dearest."
    assert task_form(refund) == task_form("Hi! Could you please l" + LONG.format(14)[1:] + "refund the dearest?")
    assert task_form(refund).whole != task_form(count).whole


# -- through the library ------------------------------------------------------------------------------

WORK = {"domain_tag": "shop", "task_family": "lookup"}


def taught(mem: Any, *asked: str, passes: str = "ship", fails: str = "hold", later: str = "") -> None:
    from tests.unit.learning.test_transcript_recall import FAIL, PASS

    for number in range(16):
        run = mem.run(user_id="ana", agent_id="a")
        run.observe("user", asked[number % len(asked)].format(number + 100))
        if later:
            run.observe("assistant", "Which?")
            run.observe("user", later)
        run.observe_tool("get_box", content="done", args={"id": number}, ok=True)
        run.observe_tool(passes if number % 2 else fails, content="done", ok=True)
        run.finish(verifier_result=PASS if number % 2 else FAIL, intent=WORK)


def first_line(mem: Any, query: str) -> str:
    found = mem.run(user_id="ana", agent_id="a").learning.recall(query, keep=False, intent=WORK)
    return str(found.text.splitlines()[0])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("asked", "query"),
    [
        (("Ship box {}.",), "Hi, could you please ship box 7?"),
        (("Hello! Please ship box {}, thanks", "ship box {}", "Could you ship box {}?"), "SHIP BOX 7"),
        (("Kannst du bitte Paket {} verschicken?",), "Hallo, Paket 7 verschicken. Danke!"),
        (("Envoyer le colis {}",), "Bonjour, pourriez-vous envoyer le colis 9, s'il vous plaît ?"),
    ],
)
def test_the_way_to_try_is_found_and_its_runs_are_one_line(mem: Any, asked: tuple[str, ...], query: str) -> None:
    taught(mem, *asked)
    line = first_line(mem, query)
    assert line.startswith("- Try get_box, then ship: passed 8 of 8 in runs like ")
    assert "…" in line


@pytest.mark.soak
def test_of_a_long_request_and_one_that_went_on_later_too(mem: Any) -> None:
    ask = LONG + "ship box {} of Amsel to the address that the customer named last"
    taught(
        mem,
        *(ask.format(days, "{}") for days in (5, 30, 365)),
        later="It is the blue one with the dented lid, top shelf.",
    )
    told = mem.run(user_id="ana", agent_id="a").learning.recall(ask.format(90, 7), keep=False, intent=WORK)
    assert told.hints[0].summary.startswith("Try get_box, then ship: passed 8 of 8 in runs like ")
    assert len(told.hints[0].model_extra["alike_ids"]) == 7


@pytest.mark.soak
def test_forms_are_kept_by_digests_and_by_none_above_the_user(mem: Any) -> None:
    taught(mem, "Hi, please ship box {}", later="It is the blue one with the dented lid, top shelf.")
    made = mem.bank(user_id="ana").records(kind="reasoning")
    later = task_form("it is the blue one with the dented lid, top shelf").whole
    assert {tuple(each.record["forms"]) for each in made} == {(task_form("Ship box 1").whole, later)}
    assert all(each.record["summary"].startswith("Asked: Ship box 1") for each in made)
    shared = mem.bank(agent_id="a").records(kind="reasoning")
    assert not any("forms" in each.record for each in shared)


def test_episodes_of_earlier_versions_have_their_form_by_what_they_tell() -> None:
    old = memory("a", "Ship box 107 – the blue one with the dented lid", "ship")
    episode = episode_of(old)
    assert episode is not None
    assert not episode.forms
    assert episode.is_of(task_form("Could you ship box 9, please?"))
    assert not episode.is_of(task_form("Could you open box 9, please?"))


def test_runs_whose_requests_are_cut_at_different_words_are_one_line() -> None:
    asked = [f"{LONG.format(days)}refund".strip()[:110].rsplit(" ", 1)[0] + "…" for days in (3, 365)]
    forms = [task_form(LONG.format(days) + "refund").whole for days in (3, 365)]
    runs = [memory(f"m{n}", text, "refund", forms=[form], summary=f"Asked: {text} Passed. Did: refund.")
            for n, (text, form) in enumerate(zip(asked, forms, strict=True))]  # fmt: skip
    (hint,) = recalled(*runs)[0].hints
    assert hint.summary.startswith('2 runs like "Look through the orders of the last quarter')
    assert '…": passed 2 of 2. Did: refund.' in hint.summary


# -- what is asked stays ------------------------------------------------------------------------------


@for_each(
    ("text", "asked"),
    [
        ("No, please cancel order 7", "No, cancel order 7"),
        ("No, please, cancel order 7", "No, cancel order 7"),
        ("No please cancel order 7", "No please cancel order 7"),
        ("Nein, bitte stornieren", "Nein, stornieren"),
        ("Nein, bitte, stornieren", "Nein, stornieren"),
        ("Nein bitte stornieren", "Nein bitte stornieren"),
        ("Non, s'il vous plaît annulez", "Non, annulez"),
        ("No, por favor, cancela el pedido 7", "No, cancela el pedido 7"),
        ("No, per favore annulla", "No, annulla"),
        ("Não, por favor cancele", "Não, cancele"),
        ("Nee, alsjeblieft annuleren", "Nee, annuleren"),
        ("Нет, пожалуйста, отмените заказ 7", "Нет, отмените заказ 7"),
        ("Подождите, пожалуйста, отмените заказ", "Подождите, отмените заказ"),
        ("Keep it, please delete the other", "Keep it, delete the other"),
        ("Wait, please, delete the order", "Wait, delete the order"),
        ("Cancel order 7 please, keep order 8", "Cancel order 7, keep order 8"),
        ("Cancel order 7. Please keep order 8", "Cancel order 7. Keep order 8"),
        ("Not that one, please. The other", "Not that one. The other"),
        ("Suchen Sie bitte Bestellung 7", "Suchen Sie Bestellung 7"),
        ("Envoyez s'il vous plaît la commande 7", "Envoyez la commande 7"),
        ("¿Puedes, por favor, buscar el pedido 7?", "Buscar el pedido 7?"),
        ("Find order 7 please\nThanks!", "Find order 7"),
        ("请取消订单7，谢谢", "取消订单7"),
        ("Find order 7 - thanks", "Find order 7"),
    ],
)
def test_what_is_left_says_what_was_asked(text: str, asked: str) -> None:
    assert request_of(text) == asked
    assert request_of(asked) == asked


@for_each(
    "text",
    ["What is Spanish for thanks?", "Reply with cheers", "Find the song Thank You", "Translate 谢谢", "翻译谢谢",
     "Translate ください", "Remove the word please from the text", "Remove the word please", "Say please",
     "Translate please into German", "Lösche die Bitte 7", "Erfülle seine Bitte", "Lösche, Bitte 7 zuerst",
     "Bitte um Rückruf", "Entferne das Wort bitte aus dem Text", "Was heißt danke?", "Comment dit-on merci",
     "Cómo se dice gracias", "Reemplaza por favor por gracias", "Wat betekent bedankt?", "Как переводится спасибо?",
     "Translate: thanks", "Thanks: how is it said in French?", "Hello in Spanish?", "Please the customer",
     "Play Please Please Me", "Add songs: Hello, Thank You", "Keep it (please) and go"],
)  # fmt: skip
def test_a_courtesy_that_is_spoken_of_stays(text: str) -> None:
    assert request_of(text) == text


def test_a_courtesy_behind_a_colon_and_a_line_end_is_what_is_asked_for() -> None:
    assert request_of("Translate:\nthanks") == "Translate: thanks"
    assert request_of("Cancel it\nplease keep order 7") == "Cancel it please keep order 7"


@for_each(
    ("one", "other"),
    [
        ("Set status of ticket 7 to Approved", "Set status of ticket 9 to Rejected"),
        ("Set it to True", "Set it to False"),
        ("Make it Public", "Make it Private"),
        ("Mark ticket 7 Open", "Mark ticket 9 Closed"),
        ("Mark Anna Present", "Mark Mia Absent"),
        ("Change ticket 7 from Open to Closed", "Change ticket 9 from Closed to Open"),
        ("Convert it from Foo to Bar", "Convert it from Baz to Bar"),
        ("List Gold members", "List Silver members"),
        ("Translate it to French", "Translate it to German"),
        ("Write it in Python", "Write it in Rust"),
        ("Rewrite it in Julia", "Rewrite it in Carmen"),
        ("rewrite it in julia", "rewrite it in carmen"),
        ("Install the drivers for Windows", "Install the drivers for Linux"),
        ("Show the list of Approved", "Show the list of Rejected"),
        ("Move it to Archive", "Move it to Trash"),
        ("Setze Ticket 7 auf Genehmigt", "Setze Ticket 9 auf Abgelehnt"),
        ("Mets le billet 7 à Ouvert", "Mets le billet 9 à Fermé"),
        ("Pon el ticket 7 en Abierto", "Pon el ticket 9 en Cerrado"),
        ("Imposta il ticket 7 su Aperto", "Imposta il ticket 9 su Chiuso"),
        ("Coloque o pedido 7 como Aberto", "Coloque o pedido 9 como Fechado"),
        ("Zet ticket 7 op Gesloten", "Zet ticket 9 op Geopend"),
        ("Поставь заявке 7 статус Открыта", "Поставь заявке 9 статус Закрыта"),
        ("Save it as utf-8", "Save it as latin-1"),
        ("Save it as utf-8", "Save it as utf-16"),
        ("Run 5km", "Run 5kg"),
        ("Wait 5ms", "Wait 5h"),
        ("Hash it with sha256", "Hash it with md5"),
        ("Find order-7", "Find ticket-7"),
    ],
)
def test_tasks_that_are_opposites_have_two_forms(one: str, other: str) -> None:
    assert task_form(one).whole != task_form(other).whole
    assert task_form(one).told != task_form(other).told


@for_each(
    ("one", "other"),
    [
        ("Send it to Anna", "Send it to Mia"),
        ("Close the ledger of Amsel", "Close the ledger of Mia Ibsen"),
        ("Book a table for Mr. Smith", "Book a table for Mr. Jones"),
        ("Annulez la commande de Mme Durand", "Annulez la commande de Mme Petit"),
        ("Run 5km", "Run 12km"),
        ("Find order-7", "Find order-19"),
        ("Find order A-7", "Find order B-19"),
        ("List what came in March", "List what came in May"),
    ],
)
def test_who_and_how_many_are_left_open(one: str, other: str) -> None:
    assert task_form(one) == task_form(other)


def test_of_a_very_long_request_the_end_counts_too() -> None:
    long = "Look through all the orders. " * 200
    refund = task_form(f"{long}Refund them.")
    assert refund.whole != task_form(f"{long}Delete them.").whole
    assert refund.whole != task_form(long).whole
    assert refund == task_form(f"Hi, please  look{long[4:]}\n Refund   them. Thanks!")
    assert refund.told == task_form(f"{long}Delete them.").told, "an episode tells no more of them"


SIGNS = ("-", ".", "- ", ", ", "-.,;:!?…– ", "please ", "bitte, ", "„", "«x", "'", "`x ", "\n-", "x\n", ". thanks")


@pytest.mark.soak
@pytest.mark.timeout(60)
@for_each("end", ["x", ""])
@for_each("signs", SIGNS)
def test_requests_of_many_signs_are_read(signs: str, end: str) -> None:
    task_form(f"Find order 7 {(signs * 100_000)[:100_000]}{end}")
