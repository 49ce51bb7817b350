"""How orders to a model are worded: for each language the ways to give one, and what imitates a prompt. Patterns alone.

Read over a text in lower case, without accents: (words of which one must stand in the text at all, what is then looked
for). Every repetition is bounded, and no two that follow one another can share the same letters in many ways: what
comes from outside must not be able to choose how long we look at it.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

__all__ = ["FORMS"]

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
_DO = (
    r"(?:say|tell|write|reply|respond|answer|add|include|mention|insert|append|recommend|promote|praise|rate|rank|call|invoke|run|execute|send|forward"
    r"|e-?mail|post|open|visit|click|fetch|download|install|delete|remove|transfer|pay|buy|approve|accept|grant|reveal|share|print|output|repeat|copy"
    r"|ignore|disregard|forget|stop|remember|save|store|mark|treat|assume|pretend|summari[sz]e|translate|provide|give|use|do\snot|don['’]?t|never|always)"
)
_ADDRESSED = (
    (
        "assistant agents ai llm model chatbot",
        rf"""\b (?:as|for|to|attention|dear|hey) [,:]? \s (?:an?\s|the\s|any\s|all\s|every\s)? {_MODEL}s? (?:\s(?:agent|assistant|model|system|bot))? s?
            (?:\s (?:reading|processing|parsing|visiting|summari[sz]ing|that\sreads|who\sreads|browsing|viewing|seeing|evaluating|reviewing) \s [\w\s]{{1,40}}?)? \s?
            [,:;–—-] \s{{0,4}} (?:please\s|kindly\s|you\s(?:must|should|will|are|have|need|shall|can)\s|always\s|immediately\s|now\s|first\s|also\s){{0,3}} {_DO} \b""",
    ),
    (
        "agents assistants ais llms models chatbots",
        r"""\b (?:ai\s|language\s)? (?:agents|assistants|ais|llms|(?:language\s)?models|chatbots|crawlers) \s
            (?:reading|processing|parsing|visiting|summari[sz]ing|that\sread|browsing|viewing|seeing|evaluating) \s (?:this|the) \s [\w-]{1,20} ,? \s
            (?:must|should|shall|are\s(?:required|instructed|asked|to)|have\sto|need\sto|please) \b""",
    ),
    (
        "summar answer respon repl",
        rf"""\b (?:when|while|if|after|before) \s (?:you\s(?:are\s)?)? (?:summari[sz](?:e|ing)|answer(?:ing)?|respond(?:ing)?|reply(?:ing)?|describ(?:e|ing)|review(?:ing)?|translat(?:e|ing)|process(?:ing)?)
            \s (?:to\s)? (?:this|the|any|about) (?:\s[\w'’-]{{1,30}}){{0,4}}? ,? \s
            (?:you\s(?:must|should|will|need\sto|have\sto)\s|always\s|please\s|first\s|also\s|be\ssure\sto\s|make\ssure\s(?:to|you)\s){{1,2}} {_DO} \b""",
    ),
    (
        "response answer reply output summary",
        r"""\b your \s (?:next\s|final\s|entire\s|only\s|first\s)? (?:response|answer|reply|output|summary|message) \s
            (?:must|should|shall|has\sto|needs\sto|will|is\sto) \s (?:only\s|always\s|now\s|also\s|not\s|end|begin|start|be|include|contain|consist|say|mention|recommend|state|link)""",
    ),
    (
        "respon answer repl output summary",
        r"""\b (?:respond|reply|answer|output) \s (?:only|exclusively|solely|with\snothing\sbut) \s (?:with|in|the|by) \b
            | \b (?:include|insert|add|append|embed|put|mention) \s (?:this|the\s(?:following|exact|link|phrase|text|sentence|code)|these) (?:\s[\w'’-]{1,30}){0,5}? \s
              (?:in(?:to|side)?|to|(?:at|to)\sthe\send\sof|within) \s (?:your|the\s(?:final\s)?) \s? (?:response|answer|reply|output|summary)""",
    ),
    (
        "instead",
        rf"""\b (?:do\snot|don['’]?t|stop|rather\sthan|instead\sof) \s (?:answer|summari[sz]|respond|reply|process|translat|help|follow|continu)(?:ing|e|y)? \b [^.!?\n]{{0,60}} [.,;:!]? \s{{0,4}} instead ,? \s {_DO} \b
            | \b instead \s of \s (?:answering|summari[sz]ing|responding|replying|helping|following) [^.!?\n]{{0,50}}? , \s {_DO} \b""",
    ),
    (
        "task objective mission assignment directive instruction",
        r"""\b (?:new|updated|actual|real|next|secret|primary|priority) \s (?:task|objective|mission|assignment|directive|goal) \s? [:=] \s
            | \b (?:stop|halt|wait|pause) [.!,:] \s{1,4} (?:new|a\snew) \s (?:task|instructions?|objective|orders?) \b""",
    ),
    (
        "the user",
        r"""\b the \s user \s (?:has\s(?:already\s)?(?:asked|authori[sz]ed|approved|instructed|agreed|consented|requested|granted|confirmed)|wants|would\slike|expects|asks|authori[sz]es|needs)
            \s (?:you|the\sassistant|the\sagent) \s (?:to|that) \b""",
    ),
    (
        "remember memory future",
        r"""\b (?:remember|save|store|record|note|memori[sz]e|add) \s (?:this|that|it|the\sfollowing|the\sfact\sthat)? [^.!?\n]{0,60}? \b (?:in|to|into) \s (?:your\s(?:long[- ]term\s|permanent\s)?|(?:the\s)?(?:long[- ]term\s|permanent\s)) memory \b
            | \b (?:in|for) \s all \s (?:future|later|subsequent) \s (?:conversations?|sessions?|chats?|responses?|answers?|interactions?) ,? \b""",
    ),
    (
        "authori permission granted unlocked verified trusted",
        r"""\b you \s (?:are\s(?:now\s|hereby\s)?(?:authori[sz]ed|permitted|allowed|granted|cleared)|have\s(?:now\s)?(?:been\s)?(?:granted\s|given\s)?(?:full|admin|root|unlimited|granted|authori[sz]ed)) \s
            (?:to|access|permission|permissions|control|rights) \b""",
    ),
)
_IMITATED = (
    (
        "<| [ <<sys ### --- === {{ ```",
        r"""<\|\s{0,2}(?:system|user|assistant|developer|tool|endoftext|eot_id|eom_id|start_header_id|end_header_id|fim_\w{1,12}|startoftext)\s{0,2}\|> | <</?sys>>
            | \[/?(?:system|assistant|developer|system_prompt|new\sinstructions?|instructions?)\]
            | ^[ \t]{0,8} [\#=*-]{2,10} \s{0,4} (?:system|developer|assistant|new\stask|(?:new\s|updated\s|system\s|hidden\s)instructions?|instructions?\sfor\s(?:the\s)?(?:ai|assistant|model|agent))
              (?:\s(?:prompt|message|note|instructions?|override))? \s{0,4} (?:[:=*\#-]|$)
            | [-=\#*]{3,20} \s? (?:end|begin|start|beginning) \s (?:of\s)? (?:the\s)? (?:system|context|document|prompt|user|data|input|instructions?|conversation|tool|untrusted|search)
              (?:\s(?:prompt|message|input|data|result|results|content|output|context))? \s{0,2} [-=\#*]{2,20}
            | ```\s{0,2}(?:system|instructions?|developer)\b | \{\{\s?(?:system|\#system)""",
    ),
    (
        "</",
        r"""</ \s? (?:tool_?results?|function_?(?:results?|response|output)|tool_?(?:response|output|call)|context|documents?|user_?(?:input|query|message)|untrusted\w{0,20}
            |search_?results?|retrieved\w{0,20}|data_?block|assistant|developer|human) \s? >""",
    ),
    (
        "<!-- display visibility font-size opacity [// color",
        rf"""(?: <!-- | display\s?:\s?none | visibility\s?:\s?hidden | font-size\s?:\s?[01](?:px|pt|em)?\b | opacity\s?:\s?0(?![.\d]*[1-9]) | ^\[//\]:\s?\# | color\s?:\s?(?:white|\#fff(?:fff)?)\b )
            (?> [^\n]{{0,120}}? \b (?:{_MODEL}|models?|you) s? \b ) [^\n]{{0,60}}? \b {_DO} \b""",
    ),
    (
        "human: user: question:",
        r"""^(?:human|user|question) \s? : [^\n]{1,400} \n{1,3} (?:assistant|ai|answer) \s? : \s{0,2} (?:sure|certainly|of\scourse|ok(?:ay)?|understood|i\s(?:will|have|shall)|here\sis\s(?:the|your|my)\s(?:system|password|key)) \b""",
    ),
)
_SPANISH = (
    (
        "ignor olvid omit desestim",
        r"""\b (?:ignor(?:a|e|en|ad)|olvid(?:a|e|en|ad)|omit(?:e|a|an)|desestim(?:a|e)|(?:debes|tienes\sque)\s(?:ignorar|olvidar)|haz\scaso\somiso\s(?:a|de)) \s (?:[\w]{1,20}\s){0,4}?
            (?:instruccion(?:es)?|indicacion(?:es)?|ordenes|reglas|directrices|contexto|anterior(?:es|mente)?|lo\santerior)""",
    ),
    (
        "instruccion tarea sistema asistente modelo usuario ahora",
        r"""\b (?:nuevas?\s(?:instruccion(?:es)?|tareas?|ordenes)\s?(?::|para\s(?:el|la|ti|usted))|tu\s(?:nueva|verdadera)\s(?:tarea|mision|instruccion|funcion)\s(?:es|sera)
            |(?:ahora|a\spartir\sde\sahora),?\s(?:eres|seras|debes|actua|actuaras|responde)|actua\scomo\s(?:si|un)|finge\s(?:ser|que)
            |(?:revela|muestra|imprime|repite|divulga)\s(?:\w{1,12}\s){0,3}?(?:prompt|instrucciones)|(?:mensaje|aviso|nota|instrucciones)\s(?:del\ssistema|para\s(?:el|la|los|cualquier)\s(?:ia|asistente|modelo|agentes?|llm)s?)
            |no\s(?:se\slo\s|le\s|se\s)?(?:digas|informes|menciones|cuentes|avises)\s(?:nada\s|esto\s)?al\susuario|sin\s(?:avisar|informar|decir(?:le)?)\s(?:nada\s)?al\susuario)""",
    ),
    (
        "asistente ia agente modelo",
        r"""(?:^|[.!?>"*\]])\s{0,4}(?:estimad[oa]\s|hola\s|atencion,?\s)?(?:asistente|ia|agente|modelo(?:\sde\slenguaje)?)(?:\sde\sia)?\s?[,:!]\s{0,4}(?:por\sfavor,?\s|debes\s|ahora\s|tienes\sque\s){0,2}
            (?:envi|reenvi|borr|elimin|ejecut|llam|transfier|sub|publiq|abr|visit|descarg|instal|aprueb|pag|compr|revel|compart|imprim|respond|recomiend|dig|di\b|escrib|ignor|no\s)""",
    ),
    (
        "envi reenvi sub transfier",
        r"""\b (?:envi(?:a|e|ar)|reenvi(?:a|e|ar)|sub(?:e|a|ir)|transfier(?:e|a)|mand(?:a|e|ar)) \s (?:\w{1,20}\s){0,5}? (?:contrasenas?|credenciales|claves?|tokens?|datos\sdel\susuario|conversacion(?:es)?|correos?|contactos?)
            \s (?:\w{1,20}\s){0,3}? a(?:l)? \s (?:[\w.+-]{1,64}@|https?://|www\.|esta\s(?:direccion|url)|este\s(?:correo|enlace))""",
    ),
)
_GERMAN = (
    (
        "ignorier vergiss missacht vergesse",
        r"""\b (?:ignorier(?:e|en|t)?|vergiss|vergesse(?:n)?|missachte(?:n)?|beachte\snicht) \s (?:\w{1,20}\s){0,4}?
            (?:anweisung(?:en)?|vorgaben?|instruktion(?:en)?|regeln?|befehle?|nachrichten?|prompts?|vorherige[nrs]?|bisherige[nrs]?|obige[nrs]?|alles\s(?:bisherige|obige|davor|vorherige))""",
    ),
    (
        "anweisung aufgabe system nutzer benutzer assistent modell jetzt hinweis nachricht wichtig achtung",
        r"""\b (?:neue\s(?:anweisung(?:en)?|aufgabe|instruktion(?:en)?)\s?(?::|fur\s(?:dich|die|den|das|alle))|deine\s(?:neue|eigentliche|wahre)\s(?:aufgabe|rolle|anweisung)\s(?:ist|lautet)
            |(?:ab\sjetzt|von\snun\san|ab\ssofort)\s(?:bist|sollst|musst|antwortest|handelst|verhaltst)\sdu|du\sbist\s(?:jetzt|nun|ab\ssofort)\s(?:ein|der|die|das|kein)|tu\sso,?\sals
            |(?:zeige?|verrate?|gib|nenne?|wiederhole?|offenbare?)\s(?:\w{1,15}\s){0,3}?(?:system-?prompt|systemanweisung(?:en)?|versteckte[nr]?\sanweisung(?:en)?)
            |(?:hinweis|nachricht|anweisung(?:en)?|wichtig|achtung)\s(?:fur|an)\s(?:die\s|den\s|das\s|alle\s)?(?:ki|assistent(?:en)?|modelle?|sprachmodelle?|agent(?:en)?|llms?|ki-\w{1,20})
            |(?:sage?|teile?|erzahle?|melde?|verrate?)\s(?:es\s|das\s|dies\s)?(?:dem|der|den)\s(?:nutzer|benutzer|anwender)(?:n|in)?\s(?:nicht|nichts|davon\snichts)|ohne\s(?:den|dem)\s(?:nutzer|benutzer)\s(?:zu\s|davon\s|etwas\s)?(?:zu\s)?(?:informieren|fragen|sagen|benachrichtigen))""",
    ),
    (
        "assistent ki agent modell",
        r"""(?:^|[.!?>"*\]])\s{0,4}(?:liebe[rs]?\s|hallo\s|achtung,?\s|hey\s)?(?:assistent|ki|ki-assistent|agent|sprachmodell|modell)\s?[,:!]\s{0,4}(?:bitte\s|du\s(?:musst|sollst)\s|jetzt\s|sofort\s){0,2}
            (?:sende|schick|leite|losch|ruf|fuhre|uberweis|lade|offne|besuch|klick|installier|genehmig|zahl|kauf|verrat|teile|gib|antwort|empfiehl|sag|schreib|ignorier|bewert)""",
    ),
    (
        "sende schicke leite ubermitt",
        r"""\b (?:sende|schicke?|leite|ubermittle|lade) \s (?:\w{1,20}\s){0,6}? (?:passwort(?:er)?|passworter|zugangsdaten|schlussel|tokens?|nachrichten|kontakte|gesprache?|unterhaltung(?:en)?|daten\sdes\s(?:nutzers|benutzers))
            \s (?:\w{1,20}\s){0,3}? an \s (?:[\w.+-]{1,64}@|https?://|www\.|diese\s(?:adresse|url|nummer))""",
    ),
)
_FRENCH = (
    (
        "ignor oubli",
        r"""(?<!ai\s)(?<!a\s)(?<!ont\s) \b (?:ignore[rzs]?|oublie[rzs]?|ne\stiens?\spas\scompte|ne\stenez\spas\scompte|neglige[rz]?|fais\sabstraction) \s (?:de\s)? (?:toute?s?\s|tous\s)? (?:l['’]|(?:les|tes|vos|ces|ses|des|la|le|tout)\s) (?:[\w'’]{1,20}\s){0,3}?
            (?:instructions?|consignes?|regles|directives?|messages?|contexte|precedente?s?|ci-dessus|tout\sce\squi\sprecede)""",
    ),
    (
        "instruction consigne tache systeme utilisateur assistant modele desormais maintenant note message avis",
        r"""\b (?:nouvelles?\s(?:instructions?|consignes?|taches?)\s?(?::|pour\s(?:toi|vous|l|le|la|les))|(?:ta|votre)\s(?:nouvelle|vraie|veritable)\s(?:tache|mission|instruction|consigne)\s(?:est|sera)
            |(?:desormais|a\spartir\sde\smaintenant|maintenant),?\s(?:tu\s(?:es|dois|seras)|vous\s(?:etes|devez|serez))|fais\scomme\ssi|faites\scomme\ssi|agis\scomme\ssi
            |(?:revele|affiche|montre|imprime|repete|divulgue)[rz]?\s(?:[\w'’]{1,15}\s){0,3}?(?:prompt|instructions?\s(?:systeme|cachees?|initiales?))
            |(?:message|note|avis|instructions?)\s(?:systeme|pour\s(?:l['’]|le\s|la\s|les\s|tout\s)(?:ia|assistant|modele|agents?|llm)s?)
            |(?:ne\s|n['’])(?:le\s|en\s)?(?:dis|dites|informe|informez|previens|prevenez|parle|parlez)\s(?:pas|rien)\s(?:\w{1,10}\s){0,2}?(?:a\s|de\s)?l['’]utilisateur|sans\s(?:en\s)?(?:informer|prevenir|avertir|le\sdire\sa)\sl['’]utilisateur)""",
    ),
    (
        "assistant ia agent modele",
        r"""(?:^|[.!?>"*\]])\s{0,4}(?:cher\s|bonjour\s|attention,?\s)?(?:assistant|ia|agent|modele(?:\sde\slangage)?)\s?[,:!]\s{0,4}(?:s['’]il\s(?:te|vous)\splait,?\s|tu\sdois\s|vous\sdevez\s|veuillez\s){0,2}
            (?:envo|transf|supprim|efface|execut|appel|telecharg|ouvr|visit|cliqu|instal|approuv|pay|achet|revel|partag|imprim|repond|recommand|dis\b|dites|ecri|ignor|ne\s)""",
    ),
    (
        "envo transf transmet",
        r"""\b (?:envoie[rz]?|envoye[rz]|transfere[rz]?|transmet(?:s|tez|tre)) \s (?:[\w'’]{1,20}\s){0,6}? (?:mots?\sde\spasse|identifiants?|cles?|jetons?|conversations?|courriels?|e-?mails?|contacts?|donnees)
            \s (?:[\w'’]{1,20}\s){0,4}? (?:a|vers) \s (?:[\w.+-]{1,64}@|https?://|www\.|cette\s(?:adresse|url)|ce\s(?:lien|serveur))""",
    ),
)
FORMS = (*_ENGLISH, *_ADDRESSED, *_IMITATED, *_SPANISH, *_GERMAN, *_FRENCH, *_CHINESE, *_KOREAN)
"""English first; what imitates a prompt is of no language."""
