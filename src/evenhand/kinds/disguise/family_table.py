"""The families of language models, their products and their makers, as patterns.

In running text a word is a model only where nothing else can be meant. `names` always are; `bare`
names (Claude, Gemini, Алиса) are where the text introduces itself by them or their maker stands
beside them; ordinary `words` (Nova, Copilot) only in the latter case. `makers` make models and
little else; `firms` make many things.
"""

from __future__ import annotations

from msgspec import Struct

_VERSION = r"[- ]?v?\d{1,2}(?:\.\d{1,2})?(?:o|b|k)?(?![a-z\d])"
_SIZE = (
    r"(?=[-_ .]?v?\d"
    r"|[-_ ](?:instruct|chat|base|code|lite|mini|pro|max|ultra|large|small|medium|tiny)(?![a-z]))"
)


class Family(Struct, frozen=True, kw_only=True):
    """One family. Each field but the first two is a pattern over lower-case text."""

    key: str
    is_tuned: bool = False
    ids: str
    """In model identifiers, where a part between separators is enough."""
    id_words: str = ""
    """In identifiers, what may be anything else: it counts beside one of `owners` alone."""
    owners: str = ""
    names: str = ""
    makers: str = ""
    bare: str = ""
    words: str = ""
    firms: str = ""


def _family(key: str, ids: str, *, is_tuned: bool = False, **patterns: str) -> Family:
    filled = {kind: text.replace("#", _VERSION) for kind, text in patterns.items()}
    return Family(key=key, ids=ids.replace("#", _SIZE), is_tuned=is_tuned, **filled)


# In the patterns of running text # stands for a version; in `ids`, for one, or a size, to follow.
FAMILIES = (
    _family(
        "openai",
        r"chatgpt|gpt-?(?:\d[\d.]*[a-z]{0,2}|oss)|davinci|codex|openai"
        r"|(?<!\d)o[134][-_ ](?:mini|pro|preview|high|low|deep-research|20\d\d)",
        id_words=r"(?<!\d)o[134](?!\d)",
        owners=r"openai|azure",
        names=r"chat ?gpt|gpt-?\d(?:\.\d)?[a-z]{0,2}(?![a-z\d])|gpt \d(?:\.\d)?o?(?![a-z\d])"
        r"|gpt-oss|o[134]-(?:mini|pro|preview)|(?:text|code)-davinci-\d+|чат ?gpt|чатгпт",
        makers=r"openai|open ai|опенэйай",
        bare=r"gpt",
        words=r"o[134]|codex",
    ),
    _family(
        "anthropic",
        r"claude|anthropic",
        names=r"claude(?:#|[- ](?:opus|sonnet|haiku|instant|code|ai))",
        makers=r"anthropic|антропик|アンソロピック",
        bare=r"claude|клод|克劳德|クロード",
    ),
    _family(
        "google",
        r"gemini|gemma|(?:med|code)palm|palm#|bard|flan|deepmind|\Agoogle\Z",
        id_words=r"palm",
        owners=r"google",
        names=r"gemini[- ]?(?:\d\.\d|pro|ultra|nano|flash|advanced|ai)(?![a-z\d])|gemma#|palm[- ]2"
        r"|google bard|bard ai|flan-t5",
        makers=r"(?:google )?deepmind|google ai",
        bare=r"gemini|gemma|джемини|ジェミニ",
        words=r"bard|palm",
        firms=r"google|гугл(?:ом|а|у)?|谷歌|グーグル",
    ),
    _family(
        "llama",
        r"(?:code|tiny|open)?llama|vicuna|alpaca|koala|guanaco|wizardlm",
        names=r"llama(?:#|[- ]?\d\.\d|-\d+b)|code ?llama|vicuna(?:#|-\d+b)|alpaca-\d+b"
        r"|koala-13b|meta ai",
        bare=r"llama|vicuna",
        words=r"alpaca",
        firms=r"meta|facebook",
    ),
    _family(
        "mistral",
        r"mistral(?:ai)?|mixtral|ministral|magistral|codestral|devstral|pixtral|voxtral|mathstral",
        names=r"mixtral|ministral|magistral(?= ?\d|-)|codestral|devstral|pixtral"
        r"|mistral(?:#|[- ](?:7b|large|small|medium|nemo|tiny)|-\w+)|le chat mistral",
        makers=r"mistral ?ai",
        bare=r"mistral",
    ),
    _family(
        "qwen",
        r"qwen|qwq|qvq|tongyi|通义|千问|dashscope|\Aalibaba\Z",
        names=r"qwen|qwq-\d+b|tongyi ?qianwen|通义千问|千问|通義千問",
        makers=r"通义实验室|tongyi lab",
        bare=r"通义|tongyi",
        firms=r"alibaba(?: cloud)?|阿里云|阿里巴巴(?:集团)?|阿里雲"
        r"|アリババ(?:クラウド)?",
    ),
    _family("deepseek", r"deepseek", names=r"deep ?seek|深度求索|дипсик"),
    _family(
        "glm",
        r"(?:chat)?glm|zhipu(?:ai)?|智谱|z-?ai|thudm|cogview",
        names=r"chat ?glm|glm-\d\w*|智谱清言|智谱ai",
        makers=r"zhipu ?ai|z\.ai|智谱(?:华章)?",
    ),
    _family(
        "yi",
        r"yi|01-?ai|零一万物",
        names=r"yi-(?:\d+b|1\.5|large|medium|lightning|vision|spark)",
        makers=r"零一万物|01\.ai",
    ),
    _family(
        "kimi",
        r"kimi|moonshot(?:ai)?",
        names=r"kimi[- ](?:k\d(?:\.\d)?|chat|ai|vl)|kimi智能助手|moonshot-v1",
        makers=r"moonshot ai|月之暗面(?:科技)?",
        bare=r"kimi",
    ),
    _family(
        "baichuan",
        r"baichuan|百川",
        names=r"baichuan|百川大模型",
        makers=r"百川智能",
        bare=r"百川",
    ),
    _family("internlm", r"internlm|internvl|书生", names=r"internlm|书生[·・]?浦语|书生大模型"),
    _family("minimax", r"minimax|abab", names=r"abab\d\w*|minimax-\w+|海螺ai", makers=r"minimax"),
    _family(
        "doubao",
        r"doubao|豆包|skylark|seed-?oss|\Abytedance(?:-seed)?\Z",
        names=r"doubao|豆包(?:大模型|模型|ai)",
        bare=r"豆包",
        firms=r"字节跳动|bytedance|バイトダンス",
    ),
    _family(
        "hunyuan",
        r"hunyuan|混元|\Atencent\Z",
        names=r"hunyuan|(?:腾讯)?混元(?:大模型|助手)|腾讯元宝",
        bare=r"混元",
        firms=r"腾讯|tencent|テンセント",
    ),
    _family(
        "ernie",
        r"ernie|文心|wenxin|\Abaidu\Z",
        names=r"ernie[- ](?:bot|\d\.\d|speed|lite)|文心一言|文心大模型|wenxin yiyan",
        bare=r"文心",
        firms=r"百度|baidu",
    ),
    _family(
        "grok",
        r"grok|x-?ai",
        names=r"grok#",
        makers=r"xai",
        bare=r"grok|грок",
    ),
    _family(
        "cohere",
        r"command[-_ ][ar](?![a-z])|command#|c4ai|aya#|aya[-_ ](?:expanse|vision)"
        r"|cohere(?:labs|forai)?",
        id_words=r"command|aya",
        owners=r"cohere",
        names=r"command[- ]r(?:\+|-plus|7b)?|command-a(?:-\w+)?|aya[- ](?:23|101|expanse|vision)",
        makers=r"cohere",
        words=r"command|aya",
    ),
    _family(
        "phi",
        r"phi#",
        id_words=r"phi",
        owners=r"microsoft",
        names=r"phi-\d(?:\.\d)?",
        words=r"phi",
        firms=r"microsoft research",
    ),
    _family(
        "falcon",
        r"falcon#|falcon-mamba",
        id_words=r"falcon",
        owners=r"tii(?:uae)?",
        names=r"falcon-?\d+b",
        words=r"falcon",
        makers=r"tii",
    ),
    _family(
        "gigachat",
        r"giga ?chat|гигачат|\Asber(?:bank)?\Z",
        names=r"giga ?chat|гига ?чат(?:ом|а|у|е)?",
        firms=r"сбер(?:банк)?(?:ом|а|у)?|sber(?:bank)?",
    ),
    _family(
        "yandex",
        r"yandex ?gpt|алиса|alice|\A(?:yandex|яндекс)\Z",
        names=r"yandex ?gpt|яндекс ?gpt|alice ai|алиса ai|алиса про",
        bare=r"алис(?:а|ы|е|у|ой)",
        firms=r"яндекс(?:ом|а|у|е)?|yandex",
    ),
    _family(
        "t-bank",
        r"t-?(?:lite|pro)|t-?bank|t-tech",
        is_tuned=True,
        names=r"t-(?:lite|pro)(?:-\w+)?",
        firms=r"т-?банк(?:ом|а)?",
    ),
    _family("vikhr", r"vikhr|вихрь", is_tuned=True, names=r"vikhr", words=r"вихрь"),
    _family("saiga", r"saiga|сайга", is_tuned=True, names=r"saiga[-_]\w+", words=r"saiga|сайга"),
    _family(
        "copilot",
        r"copilot|bing[- ]?(?:chat|ai)",
        names=r"bing (?:chat|ai)|(?:microsoft|github) copilot",
        words=r"copilot",
        firms=r"microsoft|майкрософт|微软|マイクロソフト",
    ),
    _family("nemotron", r"nemotron", is_tuned=True, names=r"nemotron", firms=r"nvidia"),
    _family(
        "granite",
        r"granite#",
        id_words=r"granite",
        owners=r"ibm(?:-granite)?",
        names=r"granite[- ]\d\.\d",
        words=r"granite",
        firms=r"ibm",
    ),
    _family(
        "ai2",
        r"olmo|tulu|tülu|allenai",
        is_tuned=True,
        names=r"olmo(?:#|e)|t[uü]lu[- ]?[23](?![a-z\d])",
        makers=r"ai2|allen institute for ai",
        bare=r"olmo",
    ),
    _family(
        "jamba", r"jamba|ai21|jurassic", names=r"jamba#|jamba-\w+|jurassic-[12]", makers=r"ai21"
    ),
    _family(
        "amazon",
        r"amazon[-_. ](?:nova|titan)|nova[- ](?:2-)?(?:micro|lite|pro|premier|canvas|sonic)"
        r"|titan[- ](?:text|embed)|\Aamazon\Z",
        id_words=r"nova|titan",
        owners=r"amazon|aws|bedrock",
        names=r"amazon (?:nova|titan)|nova (?:micro|lite|premier)",
        words=r"nova|titan",
        firms=r"amazon|aws",
    ),
    _family(
        "stablelm", r"stable-?lm|stability(?:ai)?", names=r"stable ?lm", makers=r"stability ai"
    ),
    _family("rinna", r"rinna", names=r"rinna"),
    _family("elyza", r"elyza", is_tuned=True, names=r"elyza"),
    _family("plamo", r"plamo|pfnet", names=r"plamo", makers=r"preferred networks"),
    _family("swallow", r"swallow", is_tuned=True, names=r"swallow-\d+b", words=r"swallow"),
    _family(
        "calm",
        r"(?:open)?calm|cyberagent(?:lm)?",
        names=r"opencalm|calm[23](?:-\w+)?|cyberagentlm",
        makers=r"cyberagent|サイバーエージェント",
    ),
    _family("sarashina", r"sarashina|sbintuitions", names=r"sarashina", makers=r"sb intuitions"),
    _family("nous", r"hermes|nous(?:research)?", is_tuned=True, names=r"nous[- ]hermes|hermes-\d"),
    _family("smollm", r"smollm|smolvlm|huggingfacetb", names=r"smollm"),
    _family("reka", r"reka", names=r"reka[- ](?:core|flash|edge)", makers=r"reka ai"),
    _family(
        "solar",
        r"solar#|upstage",
        id_words=r"solar",
        names=r"solar-(?:\d|pro|mini)\S{0,8}(?<!\W)",
        makers=r"upstage",
    ),
    _family("exaone", r"exaone|lgai", names=r"exaone", makers=r"lg ai research"),
    _family(
        "bloom",
        r"bloomz|bloom#",
        id_words=r"bloom",
        owners=r"bigscience",
        names=r"bloomz|bloom-\d+b",
        words=r"bloom",
        makers=r"bigscience",
    ),
    _family("dolly", r"dolly", names=r"dolly[- ]v?2|dolly-\w+b", makers=r"databricks"),
    _family(
        "moss",
        r"moss#|moss-moon",
        id_words=r"moss",
        owners=r"fnlp",
        names=r"moss-\d\w*",
        words=r"moss",
        firms=r"复旦大学",
    ),
    _family(
        "pangu", r"pangu", names=r"pangu[-σα]\S?|盘古大模型", bare=r"盘古", firms=r"华为|huawei"
    ),
    _family(
        "spark",
        r"spark#|星火|iflytek",
        id_words=r"spark",
        names=r"讯飞星火(?:认知)?(?:大模型)?|星火(?:认知)?大模型|iflytek spark|spark ?desk",
        bare=r"星火",
        words=r"spark",
        firms=r"科大讯飞|讯飞|iflytek",
    ),
    _family("skywork", r"skywork|天工", names=r"skywork|天工大模型|天工ai", makers=r"昆仑万维"),
    _family(
        "eleuther", r"gpt-?(?:j|neox?)|pythia|eleutherai", names=r"gpt-(?:j|neox?)|pythia-\d+\w+"
    ),
    _family("mpt", r"mpt|mosaicml", names=r"mpt-\d+b", makers=r"mosaicml"),
)
