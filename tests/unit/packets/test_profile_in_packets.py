"""What protects the user, and what they asked for lastingly, comes first in every packet."""

from __future__ import annotations

from typing import Any

import pytest

import muniment
from muniment import Memory
from muniment.packets.builds import Build
from muniment.packets.render import render
from packet_audit import audit

pytestmark = pytest.mark.req("TM-16")

NOW = "2026-05-20T12:00:00Z"
ALLERGY = "I am severely allergic to sesame and always carry an EpiPen."
WISH = "From now on, please always answer me in short bullet points."
TASKS = ("Book a Lebanese dinner for Saturday.", "Order lunch for the team.", "Plan my trip to Porto.")


def filled(mem: Memory, chatter: int = 60) -> dict[str, str]:
    """An allergy and a wish said once, weeks ago, and much small talk since."""
    run = mem.run(user_id="ana", session_id="first")
    first = run.observe_many(
        [
            {"role": "user", "content": ALLERGY, "ts": "2026-03-02T09:00:00Z"},
            {"role": "user", "content": WISH, "ts": "2026-03-03T09:00:00Z"},
        ]
    )
    for day in range(chatter):
        run = mem.run(user_id="ana", session_id=f"day {day}")
        stamp = f"2026-04-{day % 28 + 1:02}T1{day % 10}:00:00Z"
        run.observe("user", f"The tram was late again today, number {day} of the week it was.", ts=stamp)
        run.observe("assistant", f"Sorry to hear that about tram {day}.", ts=stamp)
    return {"allergy": first[0].id, "wish": first[1].id}


def built(mem: Memory, purpose: str, query: str, tokens: int, **given: Any) -> Build:
    run = mem.run(user_id="ana", session_id="asking")
    build = run.compose(purpose, query=query, max_tokens=tokens, now=NOW, **given)
    assert audit(build.pool, build.packet) == []
    assert render(build.packet).text == build.text
    assert mem.replay(build.id).packet_bytes == build.packet_bytes
    return build


@pytest.mark.parametrize("tokens", [256, 512, 1024])
@pytest.mark.parametrize("purpose", ["planner", "tool", "responder"])
def test_safety_and_standing_wishes_come_first(purpose: str, tokens: int) -> None:
    with muniment.open(":memory:") as mem:
        ids = filled(mem)
        for query in TASKS:
            build = built(mem, purpose, query, tokens)
            quotes = build.packet.short_term.key_quotes or ()
            assert {ids["allergy"], ids["wish"]} <= {each.evidence_id for each in quotes[:4]}, build.text
            assert ALLERGY in build.text.partition("## Said")[0]
            assert "2 March 2026:" in build.text


def test_cues_do_not_choose_what_protects_the_user() -> None:
    with muniment.open(":memory:") as mem:
        filled(mem)
        mem.run(user_id="ana", session_id="tagged").observe("user", "We booked a train to Lisbon.", tags=["trip"])
        assert ALLERGY in built(mem, "planner", "What about lunch?", 512, cues={"tags": ["trip"]}).text


def test_a_time_range_is_a_wall_for_the_profile_too() -> None:
    with muniment.open(":memory:") as mem:
        filled(mem)
        april = {"time_range": {"start": "2026-04-01T00:00:00Z", "end": "2026-04-30T00:00:00Z"}}
        assert ALLERGY not in built(mem, "planner", TASKS[0], 512, cues=april).text


def test_what_is_excluded_or_forgotten_is_not_in_the_profile() -> None:
    with muniment.open(":memory:") as mem:
        ids = filled(mem, chatter=3)
        assert ALLERGY not in built(mem, "planner", TASKS[0], 512, exclude=[ids["allergy"]]).text
        run = mem.run(user_id="ana", session_id="first")
        without = run.compose("responder", query=TASKS[0], now=NOW, exclude_session=True)
        assert ALLERGY not in without.text
        mem.forget(event=ids["allergy"])
        assert ALLERGY not in built(mem, "planner", TASKS[0], 512).text


@pytest.mark.parametrize("policy", [{"share": 0}, {"enabled": False}, {"users_off": ["an*"]}, {"purposes": ["tool"]}])
def test_a_policy_switches_it_off(policy: dict[str, Any]) -> None:
    with muniment.open(":memory:", policy={"memory": {"profile": policy}}) as mem:
        filled(mem)
        build = built(mem, "planner", TASKS[0], 256)
        assert "profile" not in build.packet.explain.filters
        assert "## About the user" not in build.text


def test_a_tool_is_not_told_of_health_unless_the_policy_or_the_call_says_so() -> None:
    with muniment.open(":memory:", policy={"memory": {"profile": {"tool_kinds": ["wish"]}}}) as mem:
        ids = filled(mem)
        plain = built(mem, "tool", "calendar.create(title='Standup', date='2026-05-21')", 256)
        assert ids["allergy"] not in plain.packet.explain.filters.get("profile", ())
        named = built(mem, "tool", "restaurant.book(note='no sesame')", 256)
        assert ids["allergy"] in named.packet.explain.filters["profile"]


def test_one_of_the_last_turns_stays_where_it_was_said() -> None:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="now")
        run.observe("user", ALLERGY)
        run.observe("assistant", "Noted.")
        build = run.compose("planner", query=TASKS[0])
        assert build.text.count(ALLERGY) == 1
        assert ALLERGY in build.text.partition("## Last turns")[2]


REVOKED = [
    ("From now on always answer me in French.", "Scrap that, English is fine again."),
    ("Never use emojis when you write to me.", "Actually, emojis are fine after all."),
    ("Don't ever schedule meetings before ten for me.", "That rule about mornings no longer applies."),
    ("Ab jetzt bitte immer duzen.", "Vergiss das wieder, Sie ist mir lieber."),
    ("Antworte mir künftig nur auf Englisch.", "Doch nicht, Deutsch ist wieder in Ordnung."),
    ("À partir de maintenant, tutoie-moi toujours.", "Finalement non, vouvoie-moi."),
    ("以后都用英文回答我。", "算了，还是用中文吧。"),
    ("앞으로는 항상 영어로 대답해 줘.", "아니야, 다시 한국어로 해 줘."),
    ("これからは必ず敬語で話してください。", "やっぱりいい、普通に話して。"),
    ("Always give me temperatures in Fahrenheit.", "I changed my mind, Celsius please."),
    ("From now on call me Captain.", "Forget the Captain thing, just use my name."),
    ("Never write me more than fifty words.", "Never mind that limit, take the space you need."),
    ("Always talk to me like a pirate.", "Forget about the pirate voice."),
    ("Antworte immer mit höchstens drei Sätzen.", "Das mit der Wortgrenze ist erledigt."),
    ("Siez mich bitte immer.", "Du brauchst mich nicht mehr zu siezen."),
    ("Ne dépasse jamais trois lignes.", "Oublie la limite, développe autant que tu veux."),
    ("A partir de ahora trátame siempre de usted.", "Olvídalo, tutéame otra vez."),
    ("Nunca escrevas mais de três linhas.", "Esquece o limite, explica com calma."),
    ("D'ora in poi parla sempre come un pirata.", "Non devi più parlare come un pirata."),
    ("Schrijf nooit meer dan drie regels.", "Vergeet die limiet, leg het rustig uit."),
    ("以后回答都不要超过五十个字。", "字数限制不用管了，慢慢说。"),
]

PLEASANTRIES = [
    ("Hello, AI companion, nice to meet you.", "Thank you for your suggestions, I will give them a try."),
    ("Hey buddy, how have you been?", "Have a good evening and thank you once more."),
    ("Hallo KI, nett dich kennenzulernen.", "Danke für den Vorschlag, das werde ich ausprobieren."),
    ("Salut l'IA, contente de te parler.", "Merci pour la suggestion, je vais l'essayer."),
    ("Hola, robot, qué gusto saludarte.", "Gracias por la sugerencia, la voy a probar."),
    ("Olá, IA, é um prazer te conhecer.", "Obrigado pela sugestão, vou testar."),
    ("Ciao, sono felice di conoscerti.", "Grazie del suggerimento, lo proverò."),
    ("Hallo, aangenaam kennis te maken.", "Bedankt voor de suggestie, ik zal het proberen."),
    ("你好，AI伙伴，见到你很开心。", "谢谢你的提议，我回去试试。"),
    ("こんにちは、AIさん、お会いできて光栄です。", "提案をありがとう、やってみるね。"),
    ("안녕하세요, AI 친구, 만나서 반갑습니다.", "제안해 줘서 고마워요, 시도해 볼게요."),
]


@pytest.mark.parametrize(("greeting", "thanks"), PLEASANTRIES)
def test_greetings_and_thanks_never_lead_a_packet(greeting: str, thanks: str) -> None:
    with muniment.open(":memory:") as mem:
        mem.run(user_id="ana", session_id="hello").observe("user", greeting, ts="2026-02-01T10:00:00Z")
        mem.run(user_id="ana", session_id="bye").observe("user", thanks, ts="2026-02-02T10:00:00Z")
        filled(mem, chatter=4)
        for purpose in ("planner", "tool", "responder"):
            for query in TASKS:
                text = built(mem, purpose, query, 512).text
                led = text.partition("## About the user")[2].partition("\n## ")[0]
                assert ALLERGY in led
                assert greeting not in led, text
                assert thanks not in led, text


@pytest.mark.parametrize("tokens", [256, 512, 1024])
@pytest.mark.parametrize(("order", "revocation"), REVOKED)
def test_an_order_is_never_shown_without_what_took_it_back(order: str, revocation: str, tokens: int) -> None:
    with muniment.open(":memory:") as mem:
        mem.run(user_id="ana", session_id="first").observe("user", order, ts="2026-02-01T10:00:00Z")
        mem.run(user_id="ana", session_id="second").observe("user", revocation, ts="2026-02-09T10:00:00Z")
        filled(mem, chatter=40)
        for purpose in ("planner", "tool", "responder"):
            for query in TASKS:
                text = built(mem, purpose, query, tokens).text
                assert order not in text or revocation in text, text
