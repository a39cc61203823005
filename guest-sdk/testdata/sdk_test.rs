//! Tests of what the Rust SDK does without a host, by its public names.

use wharf::{Json, ToolOutput, Verdict};

#[test]
fn json_comes_out_as_it_went_in() {
    for text in [
        "null", "true", "false", "0", "-1.5e+30", "12345678901234567890", "\"\"", "\"ä🙂\"", "[]", "{}", "[1,[2,{}],\"x\"]",
        "{\"a\":{\"b\":[null]},\"c\":\"\"}", "\"\\u0001\\n\\t\\r\\\"\\\\\"",
    ] {
        assert_eq!(Json::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn escapes_are_read() {
    for (text, want) in [
        (r#""\u0041\u00e4\/\b\f""#, "Aä/\u{8}\u{c}"),
        (r#""\ud83d\ude42""#, "🙂"),
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ud83dx""#, "\u{fffd}x"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\ude42\ud83d\ude42""#, "\u{fffd}🙂"),
    ] {
        assert_eq!(Json::parse(text).unwrap().as_str(), Some(want), "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for (text, want) in [
        ("", "no JSON: byte 0: it wants a value"),
        (" nul", "no JSON: byte 1: it wants a value"),
        ("1 2", "no JSON: byte 2: it wants nothing more"),
        ("01", "no JSON: byte 1: it wants nothing more"),
        ("-", "no JSON: byte 1: it wants a digit"),
        ("1.", "no JSON: byte 2: it wants a digit"),
        ("[1", "no JSON: byte 2: it wants a comma or ]"),
        ("[1,]", "no JSON: byte 3: it wants a value"),
        ("{\"a\" 1}", "no JSON: byte 5: it wants a colon"),
        ("{\"a\":1,}", "no JSON: byte 7: it wants a key"),
        ("{\"a\":1", "no JSON: byte 6: it wants a comma or }"),
        ("\"a", "no JSON: byte 2: it wants the end of a string"),
        ("\"a\nb\"", "no JSON: byte 2: it wants the end of a string"),
        ("\"\\x\"", "no JSON: byte 3: it wants an escape"),
        ("\"\\", "no JSON: byte 2: it wants an escape"),
        ("\"\\u00g0\"", "no JSON: byte 3: it wants four hexadecimal digits"),
        ("\"\\u00", "no JSON: byte 3: it wants four hexadecimal digits"),
        ("\"\\u00ä\"", "no JSON: byte 3: it wants four hexadecimal digits"),
    ] {
        assert_eq!(Json::parse(text), Err(want.to_string()), "{text:?}");
    }
}

#[test]
fn deep_json_is_refused_before_it_is_too_deep() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(Json::parse(&nested(1000)).is_ok());
    assert_eq!(Json::parse(&nested(1001)), Err("it has more than 1000 values within each other".to_string()));
}

#[test]
fn of_equal_keys_the_last_one_counts() {
    let json = Json::parse(r#"{"command":"ls","command":"rm"}"#).unwrap();
    assert_eq!(json.str("command"), "rm");
}

#[test]
fn numbers_are_read_where_they_fit() {
    let number = |text: &str| Json::parse(text).unwrap();
    assert_eq!(number("9007199254740993").as_int(), Some(9007199254740993));
    assert_eq!(number("1.5").as_int(), None);
    assert_eq!(number("99999999999999999999").as_int(), None);
    assert_eq!(number("-0.25").as_number(), Some(-0.25));
    assert_eq!(Json::from(f64::NAN), Json::Null);
}

#[test]
fn a_verdict_is_told_from_another() {
    assert_eq!(Verdict::none(), Verdict::default());
    assert_eq!(Verdict::go_on("x").decision, "continue");
    assert_eq!(Verdict::answer_in_place("x").replace, Some(("result", Json::object([("content", "x".into())]))));
    assert_eq!(Verdict::hide_tools(&["a"]).replace, Some(("hide_tools", Json::from(vec!["a"]))));
    assert!(ToolOutput::error("x").is_error);
}

#[test]
fn off_wasm_there_is_no_host() {
    let error = wharf::kv_get("a").unwrap_err();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("FAILED", "kv.get: there is no host: this is no guest"));
}
