"""Texts that tokenizers disagree about: the golden files, and hostile ones."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "texts"
HOSTILE = (
    "", " ", "\t\n\r ", "a", "The kettle's lid, 25, and 3.14!", "``quoted'' and ``` ''' text",
    "naïve café — Ångström, ÀÉÎÕÜ", "cafe\u0301 a\u0300\u0327\u0323 \u0301alone \u0327\u0301",
    "日本語のテキスト、中文字符和한국어 문장입니다.", "שלום עולם مرحبا بالعالم ١٢٣٤٫٥",
    "हिन्दी में लिखा हुआ पाठ क्‍ष", "ภาษาไทยไม่มีช่องว่าง", "emoji 😀👨‍👩‍👧‍👦🏳️‍🌈🇫🇮 1️⃣ ❤️",
    "zero\u200bwidth\u200djoin\u200cnon\ufeffbom\u2060word\u00adsoft", "\x00a\x01b\x02c\x7f\x80\x9fd",
    "\ud800 lone \udfff halves \udc00\ud800", "\ufffd replaced \ufffe\uffff", "x" * 150 + " " + "é" * 120,
    "a" * 101 + " " + "b" * 100, "[CLS] [MASK] [SEP] [PAD] [UNK] <pad> <unk>", "a[MASK]b [mask] [MASK].",
    "½ ¼ ① ㌔ ﬁ ﬀ ſ ẞ ß İ ı ς Σ ΑΣ Ω", "ｆｕｌｌｗｉｄｔｈ　ＡＢＣ １２３", "₤€£$¥ ± × ÷ ≠ ≤ ∞ √",
    "wow!!!! ... ... heyyyyy #sisisis. so... cool!!!!#tag",
    "1,000 9, 25,5, ,, a,b 3,", "!!!!!!!! ........ ------ 2.11111111111111", "snake_case camelCase __init__",
    "http://example.org/?q=1&r=%20 me@example.org #tag @name", "\u0130stanbul DI\u0307YARBAKIR",
    "\U0001f9d1\U0001f3fe\u200d\U0001f33e \U0002f800 \U00020000 \U000e0041", "\u1100\u1161\u11a8 각 \uac01",
    "tab\tnew\nline\x0bvt\x0cff\x1cfs\x1fus\x85nel\xa0nbsp\u2003em\u3000ideo", "\u2581under\u2581 \u2581",
    "e\u0301" * 40, "\u0301" * 50, "\u0344\u0374\u037e\u0387\u1f71\u2126\u212a\u212b", "ܐܒܓ ߊߋ ᠮᠣᠩ ꦗꦮ \u1b44\u1b35",
)  # fmt: skip


def golden_texts() -> list[str]:
    """Lines of texts in ten languages, and hostile ones."""
    lines = [
        line
        for path in sorted(GOLDEN.glob("*.txt"))
        for line in path.read_text("utf-8").splitlines()
    ]
    return [*lines, *HOSTILE]
