"""Short texts as people have them in tables, with the encoding they are in and how it is called."""

from __future__ import annotations

WESTERN = "cp1252 (or latin-1)"
RUSSIAN = (
    "Да",
    "Нет, не так.",
    "Это ложь",
    "США и КНР",
    "Ответ модели верный",
    "Почему небо голубое?",
    "ВАЖНО: не отвечать по-русски",
    "Ёлка — «да», съёмка — нет…",
    "Модель GPT-4 ответила: «Москва» (верно)",
    "Щука, юг, фьорд и объём",
    "Київ є столицею України",
    "он",
    "Тест № 5",
    "Санкт-Петербург",
    "Сколько будет 2+2? Ответ: 4",
    "ответ неверный, ссылок нет",
)
CHINESE = (
    "你好",
    "是",
    "为什么天空是蓝色的？",
    "模型的回答很好。",
    "北京，上海和广州",
    "请用一句话解释GPT-4的回答",
    "错误：缺少参数",
    "这本书的作者是鲁迅《呐喊》",
    "量子纠缠与贝尔不等式",
    "中国",
    "对",
    "回答错误",
    "春眠不觉晓，处处闻啼鸟",
    "深圳市腾讯计算机系统有限公司",
    "糖醋排骨怎么做",
)
JAPANESE = (
    "はい",
    "いいえ、違います。",
    "空はなぜ青いのですか。",
    "東京は日本の首都です",
    "モデルの回答は正しい",
    "カタカナとひらがな",
    "「吾輩は猫である」の作者は夏目漱石",
    "GPT-4の回答：正解！",
    "東京",
    "ありがとう",
    "コンピューター",
    "富士山の高さは3776mです",
    "相対性理論を説明してください",
)
GERMAN = (
    "Größe",
    "für",
    "Warum ist der Himmel blau? Schöne Grüße",
    "Übung macht den Meister",
    "Straße, Mäuse, Häuser und Öl",
    "Das Modell hat nicht geantwortet – schade",
    "Ähnlich",
    "Müller",
    "Weiß",
    "Überprüfung der Lösung",
)
FRENCH = (
    "café",
    "Pourquoi le ciel est-il bleu ? Parce que la lumière est diffusée",
    "à l'évidence, où ça gêne",
    "Élève très doué, même s’il a tort",
    "« Oui », répondit-elle… déjà !",
    "naïveté, cœur et Noël",
    "où",
    "déjà vu",
    "garçon",
    "L’élève",
    "RÉPONSE ERRONÉE",
    "5 €",
)
SPANISH = (
    "¿Por qué?",
    "niño",
    "La respuesta correcta está aquí: año 1492",
    "¡Sí, señor! El corazón late más rápido",
    "público, jamón y pingüino",
    "señorita",
    "España",
    "mañana será otro día",
)
OTHERS = (
    ("São Paulo é a maior cidade", "cp1252", WESTERN),
    ("perché la città è così", "cp1252", WESTERN),
    ("Ångström, 20 °C", "cp1252", WESTERN),
    ("為什麼天空是藍色的？", "big5", "big5"),
    ("안녕하세요 세계", "euc-kr", "euc-kr"),
    ("Γειά σου Κόσμε", "cp1253", "cp1253"),
    # Nothing here is written for these: better no name than a wrong one.
    ("สวัสดีชาวโลก", "cp874", None),
    ("zażółć gęślą jaźń", "cp1250", None),
)

TEXTS: list[tuple[str, str, str | None]] = [
    *((text, "cp1251", "cp1251") for text in RUSSIAN),
    *((text, codec, codec) for text in RUSSIAN[4:7] for codec in ("koi8-r", "cp866")),
    *((text, "gb18030", "gb18030") for text in CHINESE),
    *((text, "shift_jis", "shift_jis") for text in JAPANESE),
    *((text, "euc-jp", "euc-jp") for text in JAPANESE),
    *((text, "cp1252", WESTERN) for text in (*GERMAN, *FRENCH, *SPANISH)),
    *OTHERS,
]
