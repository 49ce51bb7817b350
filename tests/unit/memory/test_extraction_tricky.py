"""Sentences that look like statements and are not, or that hide one: three languages, each with the right answer."""

from __future__ import annotations

import pytest

from muniment.memory.extraction.patterns import propose, take_back
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"
NOTHING = ""

ENGLISH = """
I moved to Slack from Teams. =
We moved to Slack last year. =
I moved to Linux last week. =
I moved to Python from Java. =
We moved to Kubernetes in May. =
We moved to AWS. =
I moved to Google Docs. =
I moved to VS Code. =
We moved to TypeScript this year. =
I moved to Marketing last month. =
I moved to Team Blue. =
I moved to Room B. =
I moved to Premium. =
We moved to Acme. =
We moved to Portland last week! = user.location:Portland
We moved to Springfield, Illinois. = user.location:Springfield, Illinois
We just moved to Denver. = user.location:Denver
We've moved to Seoul. = user.location:Seoul
We live in Tokyo. = user.location:Tokyo
We live in Jira. =
I live in Excel. =
I live in Slack all day. =
I live in Hope. =
I live in Hogwarts. =
I'm based in PST. =
I live in Building C. =
I moved from Rome to Berlin. = user.location:Berlin
I moved to Berlin from Rome. = user.location:Berlin
I moved from Vim to Emacs. =
I moved to Ludwigsburg in May. = user.location:Ludwigsburg
I live in Georgia now. = user.location:Georgia
I was born in Winter. =
I come from Marketing. =
I'm originally from Engineering. =
I'm allergic to cats too. = user.allergy:cats
I'm also allergic to dust. = user.allergy:dust
I'm allergic to bad code. =
I'm allergic to meetings. =
I'm allergic to Mondays. =
I'm allergic to stupid people. =
I'm allergic to penicillin, too. = user.allergy:penicillin
I've been vegetarian since February. = user.diet:vegetarian
I've been vegan for ten years. = user.diet:vegan
I've been a vegetarian. = user.diet:vegetarian
I went vegan last year. = user.diet:vegan
I'm vegetarian for now. =
I'm vegetarian except on weekends. =
I'm vegan for Lent. =
I'm vegan-curious. =
I was vegetarian for years. =
I don't eat meat anymore. = user.avoids:meat
I don't eat meat on Fridays. =
I got a new job at Stripe. = user.employer:Stripe
I work at Home. =
I work at Christmas. =
I work at Stripe now. = user.employer:Stripe
I work as a team. =
I'm a chef at heart. =
I'm a doctor for Halloween. =
I'm a student in training. =
I'm a nurse in Leeds. = user.job:nurse
I like Tuesday better. =
I like option two. =
I like blue more. =
I like every version. =
I love myself. =
I like tea. = user.likes:tea
My favorite mug is broken. =
My favorite show is over. =
My favorite jacket is missing. =
My favorite jersey is signed. =
My favorite fruit is mango. = user.favorite.fruit:mango
I gave my sister Harry Potter books. =
I bought my dad Nike shoes. =
I showed my wife Star Wars. =
I call my brother Big Joe. =
I met my brother Tom there. = user.brother:Tom
My name is Mud. =
I'm called Mom. =
I moved to tears. =
I don't live in Rome anymore. = -user.location:Rome
I no longer live in Rome. = -user.location:Rome
We don't live in Rome anymore. = -user.location:Rome
I moved out of Rome last month. = -user.location:Rome
I'm not based in Rome anymore. = -user.location:Rome
I don't work at Acme anymore. = -user.employer:Acme
I quit my job at Acme. = -user.employer:Acme
I quit my job. = -user.employer:
I quit smoking. =
I left my keys at Acme. =
I got laid off last week. = -user.employer:
I was fired from Acme. = -user.employer:Acme
I was fired up. =
I'm not vegetarian anymore, I eat fish and meat again. = -user.diet:vegetarian
I stopped being vegan. = -user.diet:vegan
I eat meat again. = -user.avoids:meat
Turns out I'm not allergic to nuts. = -user.allergy:nuts
Turns out I'm not allergic to nuts after all. = -user.allergy:nuts
I'm no longer allergic to cats. = -user.allergy:cats
I outgrew my peanut allergy. = -user.allergy:peanut
I don't like jazz anymore. = -user.likes:jazz
I'm not a nurse anymore. = -user.job:nurse
If I quit my job at Acme, what then? =
I might quit my job. =
I want to quit my job. =
My boss said I quit my job. =
She doesn't live in Rome anymore. =
He quit his job at Acme. =
"I quit my job." =
Did I say I don't live in Rome? =
I almost quit my job. =
I would never say I don't live in Rome. =
"""

CHINESE = """
我叫外卖了。 =
我叫了外卖。 =
我叫滴滴。 =
我叫车了。 =
我叫他过来。 =
我叫服务员。 =
我叫方便面。 =
我叫黄焖鸡。 =
我叫马上来。 =
我叫小费。 =
我叫阿姨。 =
我叫救护车。 =
我叫孩子吃饭。 =
我叫李静，在腾讯做数据分析师。 = user.name:李静
我叫欧阳修文。 = user.name:欧阳修文
我叫小雨。 = user.name:小雨
我叫Tom。 = user.name:Tom
我最喜欢的颜色是蓝色。 = user.favorite.color:蓝色
我最喜欢的水果是芒果。 = user.favorite.fruit:芒果
我最喜欢的颜色是那个。 =
我最喜欢的人走了。 =
我喜欢的不是这个。 =
我喜欢就好。 =
我喜欢周三。 =
我喜欢方案二。 =
我喜欢是因为便宜。 =
我喜欢不起来。 =
我喜欢我的工作。 =
我喜欢爵士乐。 = user.likes:爵士乐
我也喜欢茶。 = user.likes:茶
我对花生也过敏。 = user.allergy:花生
我对海鲜都过敏。 = user.allergy:海鲜
我对猫毛严重过敏。 = user.allergy:猫毛
我从小对牛奶过敏。 = user.allergy:牛奶
我对加班过敏。 =
我对开会过敏。 =
我对这种人过敏。 =
我对周一过敏。 =
我对他过敏。 =
我们上周搬到杭州了！ = user.location:杭州
我们家去年搬到了成都。 = user.location:成都
我们一家搬到厦门了。 = user.location:厦门
我们搬到新办公室了。 =
我搬到三楼了。 =
我搬到新家了。 =
我们搬到一起了。 =
我搬到后面了。 =
我搬到前排了。 =
我从北京搬到上海了。 = user.location:上海
我们住在南京。 = user.location:南京
我住在市中心。 =
我住在海边。 =
我住在船上。 =
我住在五号楼。 =
我住在出租屋。 =
我妈妈住在上海。 = person.mother.location:上海
我老板搬到北京了。 = person.boss.location:北京
我在腾讯工作。 = user.employer:腾讯
我在开会。 =
我是急性子。 =
我是老师的朋友。 =
我是老师。 = user.job:老师
我吃素。 = user.diet:vegetarian
我今天吃素。 =
我不住在北京了。 = -user.location:北京
我已经不住在北京了。 = -user.location:北京
我们不再住在北京。 = -user.location:北京
我从北京搬走了。 = -user.location:北京
我从腾讯离职了。 = -user.employer:腾讯
我上个月从腾讯辞职了。 = -user.employer:腾讯
我辞职了。 = -user.employer:
我不在腾讯工作了。 = -user.employer:腾讯
我不再吃素了。 = -user.diet:vegetarian
我不是素食者了。 = -user.diet:vegetarian
我对花生不过敏。 = -user.allergy:花生
我其实对花生不过敏。 = -user.allergy:花生
我不再喜欢咖啡。 = -user.likes:咖啡
我不喜欢咖啡了。 = -user.likes:咖啡
他从腾讯离职了。 =
我想从腾讯离职。 =
我打算辞职。 =
如果我辞职了怎么办？ =
我老公辞职了。 =
我可能不住在北京了。 =
"""

KOREAN = """
지난주에 대전으로 이사했어요! = user.location:대전
우리는 지난주에 대전으로 이사했어요. = user.location:대전
저희 가족은 작년에 제주도로 이사했어요. = user.location:제주도
저희는 부산에 살아요. = user.location:부산
어제 저는 인천으로 이사했어요. = user.location:인천
누나가 결혼했어요. 지난주에 대전으로 이사했어요. =
누나가 지난주에 대전으로 이사했어요. = person.sister.location:대전
지난주에 누나가 대전으로 이사했어요. =
친구는 대전으로 이사했어요. =
지난주에 새 사무실로 이사했어요. =
우리 회사는 지난주에 판교로 이사했어요. =
우리 팀은 대전으로 이사했어요. =
저는 옆방으로 이사했어요. =
저는 새 집으로 이사했어요. =
다음 달에 대전으로 이사해요. =
지난주에 대전으로 이사했어요? =
지난주에 대전으로 이사했다고 들었어요. =
지난주에 대전으로 이사할 뻔했어요. =
저는 대전으로 이사할 거예요. =
저는 서울에 안 살아요. = -user.location:서울
저는 더 이상 서울에 살지 않아요. = -user.location:서울
이제 서울에 안 살아요. = -user.location:서울
저는 이제 서울에 안 살아요. = -user.location:서울
서울에 안 살아요. =
엄마는 서울에 안 살아요. =
저는 서울에 안 살고 싶어요. =
저는 네이버를 그만뒀어요. = -user.employer:네이버
지난주에 네이버를 그만뒀어요. = -user.employer:네이버
저는 회사를 그만뒀어요. = -user.employer:
저는 지난달에 카카오에서 퇴사했어요. = -user.employer:카카오
남편이 회사를 그만뒀어요. =
저는 회사를 그만두고 싶어요. =
저는 회사를 그만둘까 해요. =
저는 네이버에서 일하지 않아요. = -user.employer:네이버
저는 채식주의자가 아니에요. = -user.diet:vegetarian
저는 더 이상 채식주의자가 아니에요. = -user.diet:vegetarian
저는 비건이 아니에요. = -user.diet:vegan
언니는 채식주의자가 아니에요. =
저는 땅콩 알레르기가 없어요. = -user.allergy:땅콩
저는 이제 땅콩 알레르기가 없어요. = -user.allergy:땅콩
저는 알레르기가 없어요. =
저는 고양이 알레르기도 있어요. = user.allergy:고양이
저는 땅콩에 알레르기가 있어요. = user.allergy:땅콩
저는 일 알레르기가 있어요. =
저는 회의 알레르기가 있어요. =
저는 월요일 알레르기가 있어요. =
동생은 땅콩 알레르기가 있어요. = person.sibling.allergy:땅콩
저는 더 이상 커피를 좋아하지 않아요. = -user.likes:커피
저는 이제 커피를 안 좋아해요. = -user.likes:커피
저는 커피를 안 좋아해요. = user.dislikes:커피
저는 그 생각을 좋아해요. =
저는 두 번째를 좋아해요. =
저는 월요일을 좋아해요. =
저는 이 노래를 좋아해요. =
저는 우리 팀을 좋아해요. =
저는 재즈를 좋아해요. = user.likes:재즈
저는 꿈에 살아요. =
저는 과거에 살아요. =
저는 희망에 살아요. =
저는 혼자 살아요. =
저는 여기에 살아요. =
저는 김민지예요. =
저는 괜찮아요. =
제 이름은 비밀이에요. =
제 이름은 두 글자예요. =
저는 학생이 아니에요. =
저는 학생이에요. = user.job:학생
저는 아침형이에요. =
저는 집에서 일해요. =
저는 네이버에서 검색해요. =
저는 네이버에서 일해요. = user.employer:네이버
"""


def rows(table: str) -> list[tuple[str, list[str]]]:
    found = []
    for line in table.strip().splitlines():
        text, _, wanted = line.rpartition(" =")
        found.append((text, _split(wanted.strip())))
    return found


def _split(wanted: str) -> list[str]:
    parts: list[str] = []
    for word in wanted.split(" "):
        if "user." in word or "person." in word:
            parts.append(word)
        elif word:
            parts[-1] += f" {word}"
    return sorted(parts)


def read(text: str) -> list[str]:
    said = [f"{each.key}:{each.value}" for each in propose(text, "user", TS)]
    return sorted(said + [f"-{each.key}:{each.value or NOTHING}" for each in take_back(text, "user")])


ALL = [*rows(ENGLISH), *rows(CHINESE), *rows(KOREAN)]


def test_each_language_is_tried() -> None:
    assert min(len(rows(table)) for table in (ENGLISH, CHINESE, KOREAN)) >= 60


@pytest.mark.req("MP-17")
@for_each(("text", "wanted"), ALL, ids=[text for text, _ in ALL])
def test_what_is_read_is_right(text: str, wanted: list[str]) -> None:
    assert read(text) == wanted


def test_only_the_user_takes_back_what_the_user_said() -> None:
    assert take_back("I quit my job at Acme.", "assistant") == []


@pytest.mark.parametrize(
    "seed", ["I quit my job at A " * 5000, "我不住在" * 9000, "저는 이제 " * 9000, "I don't like a " * 5000]
)
def test_hostile_text_costs_little_here_too(seed: str) -> None:
    take_back(seed, "user")


@pytest.mark.soak
def test_a_hyphen_is_read_in_one_way_alone() -> None:
    """Two ways would be tried in every combination: minutes for a text as long as may be read."""
    hostile = ("I live in " + "A-" * 140 + ". ") * 170
    assert propose(hostile, "user", TS) == []
    assert take_back(hostile.replace("live", "don't live"), "user") == []
    assert read("My name is Mary O'Neil-Smith.") == ["user.name:Mary O'Neil-Smith"]
    assert read("I live in L'Isle-Adam now.") == ["user.location:L'Isle-Adam"]
