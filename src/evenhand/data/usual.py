"""What columns are usually called, in English, Russian, Chinese and Japanese, by what they hold.

Names are compared folded: case, width, spaces, `_` and `-` make no difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from itertools import chain

QUESTION = (
    *("question", "prompt", "input", "query", "instruction", "topic", "task", "problem"),
    *("user_input", "user_message", "user_prompt", "request", "questions", "prompts"),
    *("вопрос", "запрос", "промпт", "промт", "задание", "тема", "инструкция", "ввод"),
    *("问题", "提问", "题目", "输入", "提示词", "指令", "用户输入", "主题", "問題文"),
    *("質問", "問題", "入力", "プロンプト", "指示", "お題", "設問", "質問文", "トピック", "課題"),
)
ANSWER = (
    *("model_output", "answer", "output", "response", "completion", "reply", "generation"),
    *("model_answer", "model_response", "answer_text", "generated_text", "prediction"),
    *("generated_answer", "assistant_response", "answers", "outputs", "responses"),
    *("ответ", "ответ_модели", "вывод", "ответы", "результат"),
    *("回答", "答案", "输出", "回复", "答复", "模型输出", "模型回答", "模型回复"),
    *("出力", "応答", "返答", "解答", "モデル出力", "モデルの回答", "モデルの出力", "答え"),
)
MODEL = (
    *("model", "model_name", "model_id", "llm", "model_version", "generator", "modelname"),
    *(
        "модель",
        "название_модели",
        "имя_модели",
        "模型",
        "模型名称",
        "模型名",
        "モデル",
        "モデル名",
    ),
    *("bot", "bot_name", "нейросеть", "название_нейросети", "бот", "大模型", "ボット", "ボット名"),
)
VARIANT = (
    *("prompt_variant", "variant", "version", "prompt_version", "prompt_name", "prompt_id"),
    *("вариант", "версия", "вариант_промпта", "версия_промпта"),
    *("变体", "版本", "提示词版本", "バージョン", "バリアント", "プロンプト版"),
)
QUESTION_ID = (
    *("question_id", "qid", "question_no", "question_number", "task_id", "topic_id", "item_id"),
    *("id_вопроса", "номер_вопроса", "ид_вопроса", "问题id", "题号", "问题编号", "题目id"),
    *("質問id", "問題id", "質問番号", "問題番号", "設問番号"),
)
RUN_ID = ("run_id", "run", "прогон", "запуск", "运行", "批次", "実行id")
EVAL_SET = ("eval_set_variant", "eval_set", "dataset", "набор", "数据集", "データセット")
IDENT = (
    *("id", "uid", "uuid", "sample_id", "row_id", "record_id", "ид", "номер", "№"),
    *("№ п/п", "编号", "序号", "番号", "連番", "通し番号", "管理番号", "no", "no."),
)
REFERENCE = (
    *("reference", "reference_answer", "ground_truth", "expected_output", "expected_answer"),
    *("expected", "ideal_answer", "ideal", "golden_answer", "gold_answer", "golden", "gold"),
    *("correct_answer", "reference_output", "reference_response", "expected_response"),
    *("golden_response", "ground_truths", "groundtruth", "ref_answer", "target_output", "target"),
    *("эталон", "эталонный_ответ", "правильный_ответ", "верный_ответ", "ожидаемый_ответ"),
    *("идеальный_ответ", "образец_ответа", "ожидаемый_результат", "референс"),
    *(
        "参考答案",
        "标准答案",
        "正确答案",
        "参考回答",
        "标准回答",
        "期望输出",
        "期望答案",
        "期望回答",
    ),
    *("预期输出", "预期答案", "预期回答", "理想答案", "參考答案", "標準答案", "正確答案", "参考"),
    *("正解", "正答", "模範解答", "模範回答", "参照回答", "期待される回答", "期待される出力"),
    *("期待回答", "期待出力", "想定回答", "解答例", "回答例", "正解例"),
)
"""Here and below the most usual name first: of several columns the first is taken."""
CONTEXT = (
    *("context", "contexts", "retrieved_contexts", "retrieved_context", "retrieval_context"),
    *("retrieved_documents", "retrieved_docs", "retrieved_passages", "retrieved_chunks"),
    *("documents", "document", "passages", "passage", "source_text", "source_document"),
    *("background", "search_results", "reference_contexts", "reference_context"),
    *("контекст", "контексты", "найденный_контекст", "исходный_текст", "документы", "документ"),
    *(
        "上下文",
        "检索上下文",
        "检索结果",
        "检索内容",
        "参考资料",
        "参考文档",
        "背景资料",
        "背景信息",
    ),
    *(
        "參考資料",
        "背景",
        "文脈",
        "コンテキスト",
        "コンテクスト",
        "検索結果",
        "参考資料",
        "参考文書",
    ),
    *("参照文書", "関連文書", "背景情報", "前提情報"),
)
MESSAGES = (
    *("messages", "chat_history", "conversation_history", "message_history", "dialogue_history"),
    *("dialog_history", "earlier_messages", "previous_messages", "conversation"),
    *("история_диалога", "история_чата", "история_сообщений", "предыдущие_сообщения"),
    *("对话历史", "历史对话", "聊天记录", "历史消息", "会話履歴", "対話履歴", "チャット履歴"),
)
RUBRIC = ("rubric", "criteria", "критерии", "рубрика", "评分标准", "ルーブリック", "採点基準")
LANGUAGE = ("language", "язык", "语言", "言語")
TASK_NAME = (
    *("task_name", "название_задачи", "название_задания", "имя_задачи", "задача"),
    *(
        "任务",
        "任务名称",
        "任务名",
        "题目名称",
        "タスク名",
        "タスク",
        "課題名",
        "課題の名前",
        "問題名",
    ),
)


def folded(name: str) -> str:
    """A column's name as it is compared."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\s_\-]+", "_", wide.strip(" \t\ufeff:：?？*")).strip("_")


_ALL = (
    *(QUESTION, ANSWER, MODEL, VARIANT, QUESTION_ID, RUN_ID, EVAL_SET, IDENT),
    *(REFERENCE, CONTEXT, MESSAGES),
)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_A_TEXT = re.compile(
    r"_(?:text|content|body|string)$|^(?:текст|содержание)_|(?:文本|内容|原文|全文|本文|テキスト|文)$"
)
"""What says only that a column holds a text: `question text`, `Текст вопроса`, 回答文."""
_REMARK = re.compile(r"_?\([^()]*\)$")
_NUMBER = re.compile(r"(?:_|(?<=[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff]))(?:[a-z]|\d{1,2})$")
"""What tells one of several alike from the others: `answer_2`, 回答A（GPT）."""
_GENITIVES = {
    "вопроса": "вопрос",
    "ответа": "ответ",
    "запроса": "запрос",
    "промпта": "промпт",
    "задания": "задание",
}


def is_longer_form(name: str, names: Collection[str]) -> bool:
    """Whether a column is called by a usual name with more beside it: `customer question`, `Запрос
    пользователя`, 用户问题, 回答A. What something else is usually called is no longer form of
    it."""
    whole = folded(name)
    bare = _nominative(_A_TEXT.sub("", _NUMBER.sub("", _REMARK.sub("", whole))))
    if any(bare == folded(usual) for usual in chain.from_iterable(_ALL)):
        return bare != whole and bare in names
    if _CJK.search(bare):
        return any(bare.endswith(usual) for usual in names if _CJK.search(usual))
    words = bare.split("_")
    # English puts the noun last, Russian first.
    return words[-1] in names if bare.isascii() else words[0] in names


def _nominative(name: str) -> str:
    """The first word of a Russian name as it would stand alone: `ответа модели`, `ответ модели`."""
    first, *rest = name.split("_")
    return "_".join([_GENITIVES.get(first, first), *rest])
