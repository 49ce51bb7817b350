"""Words that say nothing about what a text is about: English, Chinese and Korean.

They are left out of the index and of queries alike, so that words of content decide. Question words and the small
change of conversation belong here too: everybody says "hey, great to hear".
"""

from __future__ import annotations

__all__ = ["CHINESE", "ENGLISH", "KOREAN", "KOREAN_PARTICLES"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH = _words(
    """
a about above across after again against ago ain all almost alone along already also although always am among
an and another any anybody anyone anything anywhere are aren around as at away back be became because become
been before behind being below beside besides between both but by can cannot come could couldn did didn do
does doesn doing don done down during each either else enough etc even ever every everybody everyone
everything everywhere few for from further get gets getting give given go goes going gone gonna gosh got
gotten gotta had hadn has hasn have haven having he hello her here hers herself hey hi him himself his how
however i if in indeed instead into is isn it its itself just keep kept kind know let lets like ll lot lots m
made make makes making many may maybe me might mightn mine more most much must mustn my myself near need
needn neither never no nobody none nor not nothing now nowhere o of off oh ok okay on once one ones only onto
or other others otherwise our ours ourselves out over own particular per perhaps please put quite rather re
really s said same say says see seem seems seen several shall shan she should shouldn since so some somebody
someone something sometimes somewhere still such sure t take taken than thank thanks that the their theirs
them themselves then there these they thing things this those though through thus to together too totally
toward towards under unless until up upon us use used using ve very via want was wasn way we well went were
weren what whatever when whenever where wherever whether which whichever while who whoever whole whom whose
why will with within without won would wouldn wow ya yeah yep yes yet you your yours yourself yourselves
awesome definitely yup aw aww haha lol hmm
"""
)

CHINESE = _words(
    """
的 了 是 在 和 与 及 或 也 都 就 而 着 过 被 把 给 对 从 向 到 为 以 之 其 这 那 哪 吗 呢 吧 啊 呀 么 嘛 很
太 更 最 还 又 再 只 我 你 他 她 它 您 们 个 有 没 不 要 会 能 可 什 怎 谁 几 些 什么 怎么 怎样 哪里 哪个
哪些 哪儿 多少 为什 如何 是否 可以 这个 那个 我们 你们 他们 她们 因为 所以 但是 如果 还是 或者 以及 时候 何时
何地 何种 是什 是谁 的是 了吗 是多 有多 有什 做了 么时 么样 少个 哪一 在哪
"""
)

KOREAN = _words(
    """
무엇 무엇을 무엇이 무엇인가 무엇인가요 뭐 뭘 누구 누가 누구의 언제 어디 어디에 어디서 어디로 어떤 어느 어떻게
왜 몇 얼마나 그 이 저 것 수 나 나는 내 내가 너 너는 네 네가 저는 제가 우리 그는 그녀 그녀는 그리고 그러나
하지만 또는 또 및 더 매우 아주 정말 있는 있다 있어 있나요 없다 했다 했어 했나요 하는 하다 해 할 한 된 되다
이다 입니까 인가요 인가 나요 였나요 였어
"""
)

KOREAN_PARTICLES = tuple(
    sorted(
        _words(
            """
에서는 에게서 으로는 으로도 에서도 이라고 까지는 부터는 에서 에게 한테 으로 까지 부터 처럼 보다 마다 이나
이랑 하고 라고 라는 이라 와의 과의 에는 에도 은 는 이 가 을 를 의 에 로 와 과 도 만 랑 나 야 요
"""
        ),
        key=lambda particle: (-len(particle), particle),
    )
)
"""What follows a noun in Korean, longest first; stripped where two syllables are left, or one of two."""
