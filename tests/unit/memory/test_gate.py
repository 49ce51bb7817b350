"""The gate: same sentence, same scores; odd input; and an order that holds on sentences nobody fitted it on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.memory.gate import HEADS, SentenceScores, score_sentences
from muniment.memory.profile import LASTING_MIN
from muniment.memory.statements import OWN_MIN

sys.path.append(str(Path(__file__).parents[3] / "tools"))

import fit_gate

ROOT = Path(__file__).parents[3]
STORES = "benchmarks/truth/stores/development"

HELD_OUT = {
    "safety": (
        "If there is cashew butter in it I'm in the back of an ambulance.",
        "My niece's lips turn blue after a single shrimp.",
        "The rheumatologist told me to stay off anti-inflammatories.",
        "I've worn an insulin pump since school.",
        "Helium balloons, the latex ones, close up my chest.",
        "my gran mixes up her heart pills so somebody has to check",
        "I blacked out at the wheel in March and may not drive.",
        "Auf Wespengift reagiere ich mit einem Schock.",
        "Mein Neffe darf keine Haselnüsse, sonst muss der Notarzt kommen.",
        "Mon fils fait une réaction grave aux œufs.",
        "Me pongo fatal con el marisco y acabo en el hospital.",
        "Minha avó não pode tomar aspirina.",
        "Mia nipote non può mangiare arachidi.",
        "Van noten krijgt mijn zusje geen lucht meer.",
        "我一吃螃蟹就全身起疹子。",
        "えびを食べるとじんましんが出ます。",
        "저는 복숭아 알레르기가 있어요.",
    ),
    "wish": (
        "I'd rather you addressed me as Professor.",
        "Nothing with mushrooms for me, thanks, in any recipe.",
        "Don't ever confirm an appointment without checking with me.",
        "Prices in pounds, please, every time.",
        "My ceiling for the holiday is nine hundred.",
        "No meetings before ten, whatever anyone says.",
        "Write the way I talk: plain, no corporate speak.",
        "Bitte antworte mir grundsätzlich nur auf Deutsch.",
        "Ne réserve rien sans m'en parler avant.",
        "No me mandes mensajes después de las diez.",
        "Nunca marque reunião na hora do almoço.",
        "Non mangio carne.",
        "Noem me maar Piet.",
        "以后别给我推荐恐怖片。",
        "これからは短く答えてください。",
        "앞으로는 전화하지 마세요.",
    ),
    "decision": (
        "Alright, we go with the oak floor.",
        "I accepted the job in Ghent.",
        "We signed for the flat on Tuesday.",
        "Wir haben uns für das Angebot von Petra entschieden.",
        "On prend la cuisine verte.",
        "Nos quedamos con el piso de Sants.",
        "我们决定搬去南京。",
    ),
    "correction": (
        "Sorry, I got that wrong, it's the 9th.",
        "I don't work at the bakery any more.",
        "Forget the blue one, I meant the green one.",
        "Ich wohne nicht mehr in Kassel.",
        "Je me suis trompée, c'est mardi.",
        "Ya no vivo con Pablo.",
        "我说错了，是周三。",
    ),
}
OTHERS = (
    "Could you look up the train times to Ghent?",
    "That's lovely, thank you.",
    "We had pancakes at my aunt's and then walked home.",
    "Write a limerick about a lighthouse.",
    "Peanut butter is on offer this week.",
    "What does ibuprofen do?",
    "The projector in room four is broken again.",
    "My cousin got a puppy.",
    "I went for a swim before work.",
    "return sorted(rows, key=len)",
    "I'm reading about the history of penicillin.",
    "Please summarise chapter three.",
    "Could murder a curry.",
    "ok, see you later",
    "Wie komme ich zum Bahnhof?",
    "Gestern waren wir im Kino.",
    "Merci, c'est très gentil.",
    "Hier on a visité un château.",
    "¿A qué hora abre el museo?",
    "Ayer fuimos a la playa.",
    "Que horas são?",
    "Che bella giornata!",
    "Hoe laat is het?",
    "今天天气不错。",
    "昨日は映画を見ました。",
    "어제 영화를 봤어요.",
)
NOT_OWN = (
    'The villain hissed, "I never eat shellfish."',
    "Imagine I were a chef with a nut allergy.",
    "Dear Mr Ellis, I am writing to resign from the choir.",
    "Pretend to be my landlord and say that you hate dogs.",
    "Paula told me she's allergic to kiwis.",
    "Stell dir vor, ich wäre Pilot.",
    "Supposons que j'aie un chien.",
    "Mi personaje nunca duerme.",
    "假如我是医生，你会问什么？",
)
OWN = (
    "I never eat shellfish.",
    "I have a nut allergy.",
    "I resigned from the choir.",
    "I hate dogs.",
    "I'm a pilot.",
    "Ich bin Pilotin.",
    "J'ai un chien.",
    "Nunca duermo bien.",
    "我是医生。",
)


def order(head: str, first: tuple[str, ...], second: tuple[str, ...]) -> float:
    """The share of pairs in which the first sentence scores higher."""
    above = [getattr(each, head) for each in score_sentences(first)]
    below = [getattr(each, head) for each in score_sentences(second)]
    return sum(a > b for a in above for b in below) / (len(above) * len(below))


def test_ranking_holds_on_sentences_that_were_not_fitted() -> None:
    fitted = {each.text.casefold() for each in fit_gate.read_sentences()}
    for texts in (*HELD_OUT.values(), OTHERS, NOT_OWN, OWN):
        assert not fitted.intersection(each.casefold() for each in texts)
    shares = {head: order(head, texts, OTHERS) for head, texts in HELD_OUT.items()} | {
        "own": order("own", OWN, NOT_OWN)
    }
    least = {"safety": 0.93, "wish": 0.9, "decision": 0.85, "correction": 0.85, "own": 0.75}
    assert {head: share for head, share in shares.items() if share < least[head]} == {}


def test_scores_do_not_depend_on_neighbours_or_process() -> None:
    texts = [*HELD_OUT["safety"], *OTHERS]
    together = score_sentences(texts)
    assert together == [score_sentences([each])[0] for each in texts] == score_sentences(texts[::-1])[::-1]
    script = "import sys; from muniment.memory.gate import score_sentences; print(score_sentences(sys.argv[1:]))"
    apart = subprocess.run(
        [sys.executable, "-c", script, *texts],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert apart.stdout.strip() == str(together)


def test_odd_input_is_scored() -> None:
    odd = [
        "",
        " ",
        "\n\t",
        "?",
        "🦐",
        "\x00",
        "\ud800",
        "a",
        "0" * 40,
        "é" * 7,
        "ﬁ",
        "ß",
        "漢",
        "ア",
        "각",
        "ا",
        "a\u0301",
        "-" * 99,
    ]
    for text, scores in zip(odd, score_sentences(odd), strict=True):
        assert isinstance(scores, SentenceScores)
        assert len(scores) == len(HEADS)
        assert all(isinstance(each, int) and 0 <= each <= 255 for each in scores), text
    assert score_sentences([]) == []


def test_work_is_bounded_by_the_first_part_of_a_sentence() -> None:
    for part in ("I can't have nuts. ", "a", "我不吃", "(", "x" * 5000, "각", "\u0301", "a\u200b"):
        long = part * (200_000 // len(part))
        assert score_sentences([long]) == score_sentences([long[:600]])
        assert len(fit_gate.gate_terms(long)) <= 6 * 600


def test_sentences_are_not_those_of_the_labelled_stores() -> None:
    """Nothing is fitted on what the benchmarks measure: no six words in a row, no twelve signs of unspaced scripts."""

    def runs(text: str) -> set[str]:
        words = re.findall(r"\w+", text.casefold())
        signs = re.sub(r"[^\u3040-\u9fff]", "", text)
        spaced = {" ".join(words[at : at + 6]) for at in range(len(words) - 5)}
        return spaced | {signs[at : at + 12] for at in range(len(signs) - 11)}

    stores = [json.loads(path.read_text("utf-8")) for path in (ROOT / STORES).glob("*.json")]
    turns = [turn["text"] for store in stores for session in store.get("sessions", ()) for turn in session["turns"]]
    assert len(turns) > 500
    measured = set().union(*map(runs, turns))
    assert {run for each in fit_gate.read_sentences() for run in runs(each.text)} & measured == set()


def test_labels_are_known_and_frames_are_distinct() -> None:
    frames: dict[str, str] = {}
    for path in sorted(fit_gate.SENTENCES.glob("??.txt")):
        for line in path.read_text("utf-8").splitlines():
            label, _, text = line.partition(" ")
            if label != "=":
                assert set(label) <= set("swdcx?-"), line
                assert frames.setdefault(f"{path.stem} {text}", label) == label, f"two labels: {line}"


@pytest.mark.soak
def test_data_file_is_what_the_sentences_give() -> None:
    assert fit_gate.fit(fit_gate.read_sentences(), fit_gate.Settings()) == fit_gate.DATA.read_bytes()


PLAIN = (
    "I am allergic to cashew nuts.",
    "i'm allergic to kiwi",
    "I am highly allergic to prawns, please remember.",
    "My name is Tom and I am allergic to mussels.",
    "We moved in June. I am allergic to hazelnuts.",
    "I'm a diabetic.",
    "I am seven months pregnant.",
    "I take warfarin for my heart.",
    "My wife is allergic to strawberries.",
    "My son has severe asthma.",
    "I've been a vegetarian for years.",
    "Please always call me Bob.",
    "From now on answer in Italian.",
    "Ich bin allergisch gegen Haselnüsse.",
    "Ich bin seit Mai schwanger.",
    "Je suis allergique aux fruits de mer.",
    "Soy alérgico a los mariscos.",
    "Sou alérgica a camarão.",
    "Sono allergica ai pistacchi.",
    "Ik ben allergisch voor hazelnoten.",
    "我对芒果过敏。",
    "私はえびアレルギーです。",
    "저는 복숭아 알레르기가 심해요.",
)


def test_plain_statements_are_above_the_bar_of_packets() -> None:
    """Said directly, what protects somebody and what they want for good leads every packet."""
    fitted = {each.text.casefold() for each in fit_gate.read_sentences()}
    assert not fitted.intersection(each.casefold() for each in PLAIN)
    scores = {text: max(score_sentences([text])[0][:2]) for text in PLAIN}
    assert {text: score for text, score in scores.items() if score < LASTING_MIN} == {}


REVOCATIONS = (
    "I changed my mind, Celsius please.",
    "Forget about rhyming, talk normally.",
    "You can drop the metric conversion now.",
    "I don't need reminders any more.",
    "Du brauchst mich nicht mehr zu siezen.",
    "Tu n'es plus obligé de répondre en anglais.",
    "Ya no hace falta que respondas en inglés.",
    "Não precisa mais responder em inglês.",
    "Non serve più che rispondi in inglese.",
    "Vergeet die limiet, leg het rustig uit.",
    "不用再用英文回答了。",
    "もう英語で答えなくていいです。",
    "이제 영어로 대답하지 않아도 돼요.",
)
EVERYDAY = (
    "The tram was late again today.",
    "We took the ferry instead of the bridge.",
    "The neighbours' dog barked again all night.",
    "The dentist was running late as usual.",
    "Heute war die U-Bahn schon wieder voll.",
    "Le métro était encore bondé.",
    "El metro iba lleno otra vez.",
    "O metrô lotou de novo.",
    "地铁今天又挤满了人。",
    "今朝も電車がまた遅れた。",
    "기차가 오늘 또 늦었어요.",
)
PASTED = (
    "Can you expand on the following content: We love our customers.",
    "Please elaborate on this passage:",
    "Rewrite the sentence: I never drink coffee.",
    "We are committed to providing excellent service.",
    "Kannst du die folgenden Zeilen kürzen?",
    "¿Puedes ampliar este párrafo?",
    "请润色下面这段文字：",
    "次の段落を直してください：",
    "다음 단락을 고쳐 주세요:",
)


def test_revocations_differ_from_what_merely_happened_again() -> None:
    fitted = {each.text.casefold() for each in fit_gate.read_sentences()}
    assert not fitted.intersection(each.casefold() for each in (*REVOCATIONS, *EVERYDAY, *PASTED))
    revoking = {text: score_sentences([text])[0].correction for text in REVOCATIONS}
    assert {text: score for text, score in revoking.items() if score < 160} == {}
    happening = {text: score_sentences([text])[0].correction for text in EVERYDAY}
    assert {text: score for text, score in happening.items() if score > 90} == {}


def test_a_text_to_work_on_is_not_the_speakers_own() -> None:
    own = {text: score_sentences([text])[0].own for text in PASTED}
    assert {text: score for text, score in own.items() if score >= OWN_MIN} == {}
