"""What the contract has the judge told stands in every built-in prompt, in each language."""

from __future__ import annotations

from itertools import product

import pytest

from evenhand.files.protocols import find_protocol
from evenhand.kinds.protocol import LANGUAGES

TOLD = {
    "pairwise": {
        "content only": (
            "Style, length, formatting and tone do not count",
            "Слог, объём, оформление и тон в расчёт не идут",
            "文风、篇幅、排版和语气都不算数",
            "文体、長さ、書式、口調は、質問または基準がはっきりと求めていないかぎり考慮しません",
        ),
        "the order means nothing": (
            "is random and means nothing",
            "случаен и ничего не значит",
            "是随机的，没有任何含义",
            "無作為に決めたもので、何の意味もありません",
        ),
        "no guess at a source": (
            "where it came from or which prompt or version it belongs to",
            "Не гадайте, кто написал ответ, откуда он взят, по какому промпту и какая это версия",
            "不要猜测回答出自谁手、从何而来、用了哪个提示词、属于哪个版本",
            "どのプロンプトや版によるものかを推測してはいけません",
        ),
        "no word of metadata": (
            "no author, no model, no other metadata",
            "ни о других метаданных",
            "也不要在任何地方提及作者、模型等元数据",
            "メタデータには、返答のどこでも触れないでください",
        ),
        "no criterion added or reinterpreted": (
            "add none, and do not reinterpret one",
            "не добавляйте новых и не толкуйте их по-своему",
            "不新增，不另作解释",
            "基準を加えたり、解釈を変えたりしません",
        ),
        "a one-line comment": (
            "one line in English, without a line break",
            "одна строка по-русски, без переносов",
            "用中文写一行，不换行",
            "改行せず日本語の1行にまとめます",
        ),
        "the explanation leans on the criteria": (
            "that say which criteria decided and why",
            "какие критерии решили дело и почему",
            "说明是哪些标准起了决定作用以及理由",
            "どの基準が決め手になったのか、それはなぜか",
        ),
        "the winner follows from the marks": (
            "by the rule below and by nothing else",
            "и никак иначе",
            "胜负只由各条 `mark` 按下面的规则得出",
            "次の規則に従って `mark` だけから決まります",
        ),
    },
    "rubric": {
        "a strict judge": (
            "You are a strict judge",
            "Вы строгий судья",
            "你是严格的评测员",
            "あなたは厳格な審査員です",
        ),
        "no comparison with other samples": (
            "do not compare it with other answers, samples or versions",
            "не сравнивайте ни с другими ответами, ни с другими вариантами",
            "不与其他回答、样本或版本作任何比较",
            "ほかの回答、サンプル、版と比べてはいけません",
        ),
        "no rule or dimension added or reinterpreted": (
            "add no rule and no dimension, and do not reinterpret one",
            "не добавляйте правил и критериев и не толкуйте их по-своему",
            "不新增规则和维度，不另作解释",
            "規則や観点を加えたり、解釈を変えたりしません",
        ),
        "only what is given": (
            "Nothing else counts",
            "Опирайтесь только на вопрос, ответ и критерии",
            "除此之外一概不作依据，不得臆测",
            "ほかのものに頼ってはいけません",
        ),
        "knowledge of the world only where facts are asked about": (
            "only where a dimension's definition asks whether facts are right",
            "лишь там, где определение критерия спрашивает, верны ли факты",
            "只有当某个维度的定义问到事实是否正确时",
            "観点の定義が事実の正しさを問うている場合だけ",
        ),
        "doubt goes into notes": (
            "put any doubt into `notes`",
            "сомнения записывайте в `notes`",
            "有疑问就写入 `notes`",
            "疑いが残れば `notes` に書きます",
        ),
        "one to three short fragments, verbatim": (
            "each as short as possible, copied character by character",
            "как можно короче. Копируйте их знак в знак",
            "尽量短，逐字照抄",
            "できるだけ短く、一字一句そのまま写します",
        ),
        "the most conservative score": (
            "give the most conservative one",
            "поставьте самый осторожный",
            "给出最保守的分数",
            "最も控えめな得点",
        ),
        "tags never change a score": (
            "Tags explain a score and never change it",
            "Метки поясняют балл, но не меняют его",
            "标签只作说明，不影响分数",
            "得点には影響させません",
        ),
        "notes for doubt and missing input alone": (
            "unless something is uncertain or an input is missing; at most 300 characters",
            "не длиннее 300 знаков",
            "仅在有不确定之处或缺少输入时填写，不超过 300 字",
            "不確かな点や足りない入力があるときだけ300字以内で書き",
        ),
    },
    "weighted": {
        "a strict judge": (
            "You are a strict judge",
            "Вы строгий судья",
            "你是严格的评测员",
            "あなたは厳格な審査員です",
        ),
        "no guess at the prompt or version": (
            "do not guess who wrote it or which prompt or version it came from",
            "не гадайте, кто его написал, по какому промпту и какая это версия",
            "也不猜测它出自谁手、用了哪个提示词、属于哪个版本",
            "どのプロンプトや版によるものかを推測したりしてはいけません",
        ),
        "no rule, dimension or condition added or reinterpreted": (
            "add no rule, no dimension and no condition, and do not reinterpret one",
            "не добавляйте правил, критериев и условий и не толкуйте их по-своему",
            "不新增规则、维度和条件，也不另作解释",
            "規則や観点、条件を加えたり、解釈を変えたりしません",
        ),
        "critical fails before anything else": (
            "Before anything else, check the answer against each condition in `critical`",
            "Прежде всего проверьте, нет ли в ответе ошибок из `critical`",
            "先于其他一切，逐条核对 `critical` 中的条件",
            "何よりも先に、`critical` の条件を一つずつ",
        ),
        "what the user forbade first": (
            "Name first what the user forbade",
            "Сначала назовите, что он запретил",
            "先找出用户禁止了什么",
            "まず、禁じたこと",
        ),
        "what the user wants": (
            "what the user wants with `prompt`",
            "чего он хочет в `prompt`",
            "弄清用户在 `prompt` 中要的是什么",
            "ユーザーが `prompt` で何を望んでいるのかをつかみます",
        ),
        "facts are true": (
            "What `facts` says is true, even where you know otherwise",
            "Сказанное в `facts` верно, даже если вам известно другое",
            "`facts` 中的说法一律视为真",
            "あなたの知識と食い違っていても正しいものとします",
        ),
        "unsure of a fact: low": (
            'if you are unsure of a fact that matters, `confidence` is "low"',
            'если вы не уверены в существенном факте, `confidence` — "low"',
            '对关键事实没有把握时，`confidence` 写 "low"',
            '重要な事実に確信が持てないときは、`confidence` を "low" とします',
        ),
        "points as the rubric says": (
            "Add and deduct as `rubric` says",
            "Прибавляйте и снимайте баллы так, как сказано в `rubric`",
            "依照 `rubric` 加分和扣分",
            "`rubric` に従って加点、減点します",
        ),
        "at most 200 characters": (
            "at most 200 characters each",
            "не длиннее 200 знаков",
            "每条不超过 200 字",
            "それぞれ200字以内",
        ),
    },
}
CASES = [
    (kind, rule, language) for kind in TOLD for rule, language in product(TOLD[kind], LANGUAGES)
]


@pytest.mark.parametrize(("kind", "rule", "language"), CASES)
def test_the_judge_is_told(kind: str, rule: str, language: str) -> None:
    prompt = find_protocol(kind).texts[f"prompts/{language}.md"]
    place = ("en", "ru", "zh", "ja").index(language)
    assert TOLD[kind][rule][place] in prompt
