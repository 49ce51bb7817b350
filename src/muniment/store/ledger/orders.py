"""Words that try to give orders: does a text from outside address the model and tell it what to do (LG-08)?

In English, Chinese and Korean. A flag to look at, not a verdict: what is flagged is kept, and not quoted to a model.
"""

from __future__ import annotations

import re
from unicodedata import normalize

from muniment.core.text.patterns import lazy_pattern

__all__ = ["reads_like_instructions"]

# Read over the text in lower case: (words of which one must stand in the text at all, what is then looked for).
# Every repetition is bounded, and no two that follow one another can share the same letters in many ways: what comes
# from outside must not be able to choose how long we look at it.
_MODEL = r"(?:ai|assistant|agent|chatbot|llm|language\s(?:model|assistant)|copilot)"
_WORDS = r"(?:[\w'’-]{1,40}\s{1,4})"
_ADDRESS = (
    r"(?: [\w.+-]{1,64}@ | https?:// | www\. | this\s(?:address|url|link|e-?mail|number|server|webhook|endpoint) )"
)
_ENGLISH = (
    (
        "ignore disregard forget override bypass",
        rf"""(?:ignore|disregard|forget|override|bypass) \s{{1,4}} {_WORDS}{{0,4}}?
            (?:previous|prior|earlier|above|preceding|all|your|any|the) \s{{1,4}} {_WORDS}{{0,3}}?
            (?:instructions?|prompts?|rules?|guidelines?|directions?|messages?|context) \b""",
    ),
    (
        "ignore disregard forget",
        rf"""(?:ignore|disregard|forget) \s{{1,4}} (?:everything|anything|all|what(?:ever)?) \s{{1,4}} {_WORDS}{{0,3}}?
            (?:above\b|before\s(?:this|now|here)|previously|you\s(?:were|have\sbeen|had\sbeen|are)\s(?:told|taught|asked|given)
            |you\s(?:know|learned|read)\b | said\s(?:above|before|so\sfar))""",
    ),
    (
        "instruction",
        rf"""(?:new|updated|important|urgent|revised|hidden|secret) \s{{1,4}} (?:system\s{{1,4}})? instructions?
            \s? (?: : | for \s (?:you|(?:the|any|all)\s{_MODEL}|the\smodel) )""",
    ),
    (
        "you pretend",
        rf"""(?:if\syou\sare\san?\s{_MODEL}|you\sare\snow|from\snow\son\s?,?\s?you|pretend\s(?:to\sbe|you\sare|that\syou\sare)
            |act\sas\s(?:if|though)\syou) \b""",
    ),
    (
        "your",
        r"""\b your \s (?:new|real|true|actual) \s
            (?:task|goal|objective|instruction|role|mission|purpose|owner|master) s? \s (?:is|are|will)\b""",
    ),
    (
        "prompt instruction",
        rf"""(?:reveal|print|repeat|show|output|leak|disclose|display|recite) \s{{1,4}} {_WORDS}{{0,3}}?
            (?:system\sprompt|hidden\sprompt|initial\sprompt|(?:your|hidden|system)\sinstructions)""",
    ),
    (
        "user human operator anyone",
        rf"""(?:do\snot|don['’]t|never) \s (?:tell|inform|mention\s(?:this\s)?to|alert|notify|warn) \s
            {_WORDS}{{0,2}}? (?:user|human|operator|anyone) \b
            | without \s (?:telling|informing|notifying|alerting|asking) \s the \s user \b""",
    ),
    (
        "password credential secret key token conversation",
        rf"""(?:send|forward|upload|post|exfiltrate|email|transmit) \s{{1,4}} {_WORDS}{{0,6}}?
            (?:password|credential|secret|api\skey|token|private\skey|conversation) s?""",
    ),
    (
        "@ http www. this",
        rf"""\b (?:send|forward|upload|post|exfiltrate|e-?mail|transmit|leak|copy|bcc|deliver) \s{{1,4}}
            (?: (?:all|every|each|any) \s (?:of\s)? (?:the\s|your\s|their\s|its\s|his\s|her\s)?
                (?:new\s|private\s|incoming\s|chat\s|past\s|personal\s)?
                (?:messages?|e-?mails?|conversations?|chats?|history|contacts?|data|information|files\sof\sthe\suser)
              | (?:the\s)? users?['’]s? \s [\w'’-]{{1,40}} (?:\s[\w'’-]{{1,40}}){{0,2}}? )
            \s{{1,4}} to \s {_ADDRESS}""",
    ),
    (
        "system instruction im_start im_end [inst] [/inst] important urgent admin override",
        r"""<\s{0,4}/?\s{0,4}(?:system(?:[-_ ](?:prompt|message|reminder))?|instructions?|im_start|im_end
            |important|urgent|admin|override)\s{0,4}> | <\|im_(?:start|end)\|> | \[/?inst\]
            | ^[ \t]{0,8} (?:\#{2,6}[ \t]{0,4})? [\[(*]{0,2} system [\])*]{0,2} [ \t]{0,4}
              (?:prompt|message|note|override|command|alert)? [\])*]{0,2} [ \t]{0,4} :
            | \b system \s override \b | \b admin(?:istrator)?\s(?:override|command) \s? :""",
    ),
    (
        "must should shall has need",
        rf"""\b (?:{_MODEL}|model) \s (?:must|should|shall|has\sto|needs?\sto) \s
            (?:now|immediately|always|instead|not) \b""",
    ),
    (
        "tool function command",
        rf"""\b (?: you \s (?:must|should|shall|will|need\sto|have\sto|are\s(?:required|ordered)\sto)
                \s (?:now|immediately|first|next|instead|always|also)
              | (?:please|now|immediately|then) ,? ) \s
            (?:call|invoke|execute|run|trigger|use) \s (?:(?:the|your|this)\s)? [\w.-]{{0,40}}_[\w.-]{{1,40}}
            \s (?:tool|function|command|plugin) \b
            | \b you \s (?:must|should|shall|need\sto|have\sto) \s (?:now|immediately|instead) \s
              (?:call|invoke|execute|run|trigger) \s {_WORDS}{{0,4}}? (?:tool|function|command) \b""",
    ),
    (
        "ai, ai! assistant, assistant! agent, agent! chatbot, chatbot! llm, model, copilot,",
        rf"""(?: ^ | [.!?>"*\]] ) \s{{0,4}} (?:(?:dear|hey|hello|ok|okay|attention) ,? \s)?
            {_MODEL} (?:\s(?:assistant|agent|model))? [,!] \s{{1,4}}
            (?:(?:please|kindly|now|immediately|you\s(?:must|should|will|need\sto)) ,? \s){{0,2}}
            (?:e-?mail|send|forward|delete|remove|call|run|execute|transfer|upload|post|open|visit|click|fetch|reveal|share
            |print|output|approve|pay|buy|grant|disable|ignore|disregard|copy|give|provide|invoke|download|install
            |stop|do\snot|don['’]t|tell|write|recommend|rate|mark|change|update|set|add|reply|respond|answer|say) \b""",
    ),
    (
        "ai: ais: assistant: assistants: agent: agents: chatbot: llm: llms: copilot: page: document: text: email:",
        rf"""\b (?:note|notice|message|attention|reminder|instruction|directive) s? [:,]? \s (?:(?:to|for)\s)?
            (?:(?:the|any|all|every)\s)? {_MODEL} (?:\s(?:assistant|agent|model))? s?
            (?:\s(?:reading|processing|handling|parsing|summari[sz]ing)\s(?:this|the)\s[\w-]{{1,20}})? :""",
    ),
    (
        "developer jailbreak unrestricted restrictions dan",
        r"""\b (?:enter|enable|activate|switch\s(?:in)?to|you\sare\sin) \s (?:the\s)?
            (?:developer|jailbreak|dan|god|debug|unrestricted) \s mode \b
            | \b you \s have \s no \s (?:restrictions|rules|limits|guidelines) \b""",
    ),
)  # fmt: skip
_CHINESE = (
    (
        "忽略 无视 忘记 忘掉 不要理会 不用管 抛开",
        r"""(?:忽略|无视|忘记|忘掉|不要理会|不用管|抛开) [^\s。！？]{0,8}?
            (?:之前|以上|先前|上述|上面|此前|所有|前面|你的|一切) [^\s。！？]{0,6}?
            (?:指令|指示|提示|规则|命令|要求|设定|限制|内容|对话|说明|消息)""",
    ),
    (
        "你现在是 从现在 从此 系统提示 不要告诉 别告诉 请勿告知 你的新 假装 新指令 新的指令",
        r"""你现在是 | 从(?:现在|此)(?:起|开始)?[,，]?你 | 系统提示词?[:：]
            | 你的新(?:任务|身份|角色|目标|指令)(?:是|为|[:：])
            | (?:输出|泄露|显示|打印|透露|重复)\S{0,4}?(?:系统提示|提示词|隐藏指令|初始指令) | 假装(?:你|自己)?是
            | 新的?(?:系统)?指令[:：]
            | (?:不要|别|请勿|不得|不可)(?:告诉|告知|通知|提醒)(?:用户|使用者|主人) """,
    ),
    (
        "系统 管理员 开发者 助手 ai 人工智能 智能体 模型",
        r"""(?:^|[\s。！？；>])【?\[?(?:系统|管理员|开发者)(?:消息|指令|命令|通知)?\]?】?\s?[:：]\s?
                (?:请|立即|立刻|马上|现在|必须|务必|你|把|将|忽略|执行|删除|发送|转发)
            | (?:^|[\s。！？；>])(?:亲爱的)?(?:ai|人工智能|智能|语言)?(?:助手|助理|智能体|模型|ai)\s?[,，!！:：]\s?
                (?:请|立即|立刻|马上|现在|必须|务必|你|把|将|忽略|执行|删除|发送|转发)""",
    ),
    (
        "发送 发给 发到 转发 上传 传给 寄给 泄露",
        r"""(?:请|立即|立刻|马上|必须|务必|你要|你应该|你需要|现在) (?> [^\s。！？]{0,8}? (?:把|将) ) [^\s。！？]{0,6}?
            (?:用户|客户|主人|所有|全部) (?> [^\s。！？]{0,8}?
            (?:密码|口令|密钥|身份证|护照|信用卡|银行卡|验证码|邮件|聊天记录|对话|通讯录|联系人|隐私|资料|数据|文件) )
            [^\s。！？]{0,8}? (?:发送|发给|发到|转发|上传|传给|寄给|泄露)""",
    ),
    (
        "调用 执行 运行",
        r"""(?:你|助手|模型) [^\s。！？]{0,4}? (?:必须|立即|立刻|马上|现在|务必) [^\s。！？]{0,6}? (?:调用|执行|运行)
            [^。！？]{0,30}? (?:工具|函数|命令) | (?:立即|立刻|马上)调用 [^。！？]{0,30}? (?:工具|函数)""",
    ),
)
_KOREAN = (
    (
        "무시 잊",
        r"""(?:이전|위의?|앞의|앞선|기존|지금까지의?|모든|상기) \s? (?> \S{0,12}?(?:\s\S{0,6}?)?\s?
            (?:지시|지침|명령|규칙|프롬프트|내용|대화|설명|제한) ) \S{0,8}?(?:\s\S{0,4}?)?\s? (?:무시|잊)""",
    ),
    (
        "지금부터 이제 시스템 사용자에게 사용자한테 관리자 개발자 새로운",
        r"""(?:지금|이제)부터\s(?:너는|넌|당신은)
            | (?:당신은|너는|넌)\s(?:이제|지금부터)\s[^.!?]{1,20}?(?:입니다|이다|이야|다[.!])
            | 시스템\s?프롬프트 | 새로운\s(?:지시|지침|명령|임무)(?:사항)?\s?(?:[:：]|은|입니다)
            | 사용자(?:에게|한테)(?:는)?\s(?:\S{1,12}\s){0,2}?(?:말하지|알리지|묻지|밝히지|보고하지)\s?(?:마|말)
            | (?:^|[\s.!?>\[【])(?:시스템|관리자|개발자)\s?(?:메시지|지시|명령|알림)?[\]】]?\s?[:：]\s?
              (?:\S{1,20}\s){0,8}?\S{0,20}?(?:하세요|하십시오|해라|하라|해\s?주세요|해\s?줘|보내|삭제)""",
    ),
    (
        "사용자 고객 모든",
        r"""(?:사용자|고객)(?:의|님의)?\s(?:\S{1,12}\s){0,2}?
            (?:비밀번호|암호|여권|카드\s?번호|주민등록번호|인증\s?번호|메일|이메일|대화|연락처|정보)
            \S{0,4}\s(?:\S{1,40}\s){0,3}?(?:보내|전송|전달|유출|업로드)\s?(?:세요|해|하|라|줘|주)
            | 모든\s(?:메일|이메일|메시지|대화|연락처)(?:을|를)?\s(?:\S{1,40}\s){0,3}?
            (?:전달|전송|보내|업로드)\s?(?:세요|해|하세|하십|하라|라|줘|주)""",
    ),
    (
        "어시스턴트 비서 에이전트 챗봇 모델 ai",
        r"""(?:^|[\s.!?>])(?:ai|인공지능)?\s?(?:어시스턴트|비서|에이전트|챗봇|모델|ai)(?:야|님|여)?\s?[,!:：]\s?
            (?:\S{1,40}\s){0,6}?\S{0,20}?(?:하세요|하십시오|해라|하라|해\s?주세요|해\s?줘|보내|삭제하|실행하|호출하)""",
    ),
    (
        "도구 함수",
        r"""(?:지금|즉시|당장|반드시)\s(?:\S{1,40}\s){0,2}?\S{0,20}\s?(?:도구|함수)(?:을|를)\s?(?:호출|실행)\s?(?:하|해)""",
    ),
)
_ORDERS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (tuple(hints.split()), lazy_pattern(f"(?mx){pattern}")) for hints, pattern in (*_ENGLISH, *_CHINESE, *_KOREAN)
)
_UNSEEN = lazy_pattern("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
"""What no reader sees, and may stand within a word to hide it from us."""
_TAGS = lazy_pattern("[\U000e0020-\U000e007e]")
"""Letters that no reader sees and a model may well read: each is an ASCII sign, so many places further on."""


def reads_like_instructions(text: str) -> bool:
    """Does the text address the model and tell it what to do? A flag to look at, not a verdict."""
    lowered = (text if text.isascii() else _visible_text(text)).lower()
    return any(
        any(hint in lowered for hint in hints) and pattern.search(lowered) is not None for hints, pattern in _ORDERS
    )


def _visible_text(text: str) -> str:
    """What the text says to whoever reads it, in plain letters."""
    return _UNSEEN.sub("", normalize("NFKC", _TAGS.sub(lambda tag: chr(ord(tag[0]) - 0xE0000), text)))
