/** What a JSON value is. */
export enum Kind {
  /** null, and what is not there. */
  Null,
  Bool,
  Number,
  Text,
  List,
  Object,
}

/** How deep lists and objects may stand within each other. */
const DEPTH = 1000;

const noNames: string[] = [];
const noItems: Json[] = [];

/**
 * A JSON value. Numbers keep the digits that they came with, and of two equal
 * keys of an object the last one counts, as for the host.
 */
export class Json {
  private names: string[] = noNames; // of an object
  private parts: Json[] = noItems; // of an object or a list
  private word: string = ""; // a text, or a number's digits
  private yes: bool = false;

  private constructor(
    /** What it is. */
    readonly kind: Kind,
  ) {}

  /** Reads one value, and nothing behind it; null if it is no JSON. */
  static parse(text: string): Json | null {
    return new JsonReader(text).whole();
  }

  /** null. */
  static nothing(): Json {
    return new Json(Kind.Null);
  }

  /** A text. */
  static text(text: string): Json {
    const json = new Json(Kind.Text);
    json.word = text;
    return json;
  }

  /** A whole number. */
  static int(value: i64): Json {
    return Json.digits(value.toString());
  }

  /** A number; one that JSON cannot write becomes null. */
  static number(value: f64): Json {
    return isFinite(value) ? Json.digits(value.toString()) : Json.nothing();
  }

  /** A number, as it is written. */
  static digits(digits: string): Json {
    const json = new Json(Kind.Number);
    json.word = digits;
    return json;
  }

  /** true or false. */
  static bool(value: bool): Json {
    const json = new Json(Kind.Bool);
    json.yes = value;
    return json;
  }

  /** A list. */
  static list(items: Json[] = []): Json {
    const json = new Json(Kind.List);
    json.parts = items;
    return json;
  }

  /** A list of texts. */
  static texts(texts: string[]): Json {
    const items = new Array<Json>(0);
    for (let i = 0; i < texts.length; i++) items.push(Json.text(texts[i]));
    return Json.list(items);
  }

  /** An object, to which `with` adds keys. */
  static object(): Json {
    const json = new Json(Kind.Object);
    json.names = [];
    json.parts = [];
    return json;
  }

  /** Adds a key and its value to an object, and gives the object. */
  with(key: string, value: Json): Json {
    assert(this.kind == Kind.Object, "a key is added to what is no object");
    this.names.push(key);
    this.parts.push(value);
    return this;
  }

  /** The value of a key of an object; null if there is none. */
  get(key: string): Json {
    for (let i = this.names.length - 1; i >= 0; i--) {
      if (this.names[i] == key) return this.parts[i];
    }
    return Json.nothing();
  }

  /** The text of a key of an object; empty if there is none. */
  str(key: string): string {
    return this.get(key).asText();
  }

  /** Whether it is null, or not there. */
  get isNull(): bool {
    return this.kind == Kind.Null;
  }

  /** The text, if it is one. */
  asText(otherwise: string = ""): string {
    return this.kind == Kind.Text ? this.word : otherwise;
  }

  /** True or false, if it is one of them. */
  asBool(otherwise: bool = false): bool {
    return this.kind == Kind.Bool ? this.yes : otherwise;
  }

  /** The number, if it is one. */
  asNumber(otherwise: f64 = 0): f64 {
    return this.kind == Kind.Number ? F64.parseFloat(this.word) : otherwise;
  }

  /** The whole number, if it is one that fits. */
  asInt(otherwise: i64 = 0): i64 {
    if (this.kind != Kind.Number) return otherwise;
    const negative = this.word.startsWith("-");
    let value: i64 = 0; // below zero, where there is one number more
    for (let i = negative ? 1 : 0; i < this.word.length; i++) {
      const digit = this.word.charCodeAt(i) - 0x30;
      if (digit < 0 || digit > 9 || value < (i64.MIN_VALUE + digit) / 10) return otherwise;
      value = value * 10 - digit;
    }
    if (negative) return value;
    return value == i64.MIN_VALUE ? otherwise : -value;
  }

  /** The items of a list, or the values of an object. */
  get items(): Json[] {
    return this.parts;
  }

  /** The keys of an object, in the order of its values. */
  get keys(): string[] {
    return this.names;
  }

  /** The JSON text, without blanks. */
  toString(): string {
    const out: string[] = [];
    this.write(out);
    return out.join("");
  }

  private write(out: string[]): void {
    switch (this.kind) {
      case Kind.Bool:
        out.push(this.yes ? "true" : "false");
        return;
      case Kind.Number:
        out.push(this.word);
        return;
      case Kind.Text:
        quote(this.word, out);
        return;
      case Kind.List:
      case Kind.Object:
        this.writeParts(out);
        return;
      default:
        out.push("null");
    }
  }

  private writeParts(out: string[]): void {
    const isObject = this.kind == Kind.Object;
    out.push(isObject ? "{" : "[");
    for (let i = 0; i < this.parts.length; i++) {
      if (i > 0) out.push(",");
      if (isObject) {
        quote(this.names[i], out);
        out.push(":");
      }
      this.parts[i].write(out);
    }
    out.push(isObject ? "}" : "]");
  }
}

/** Writes a text with what JSON cannot hold escaped. */
function quote(text: string, out: string[]): void {
  out.push('"');
  let done = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x20 && code != 0x22 && code != 0x5c) continue;
    out.push(text.substring(done, i));
    done = i + 1;
    out.push(escaped(code));
  }
  out.push(text.substring(done));
  out.push('"');
}

function escaped(code: i32): string {
  switch (code) {
    case 0x22:
      return '\\"';
    case 0x5c:
      return "\\\\";
    case 0x0a:
      return "\\n";
    case 0x09:
      return "\\t";
    case 0x0d:
      return "\\r";
    default:
      return "\\u" + code.toString(16).padStart(4, "0");
  }
}

/** Reads JSON; `error` says why what it read is none. */
export class JsonReader {
  error: string = "";
  private at: i32 = 0;
  private depth: i32 = 0;

  constructor(private text: string) {}

  /** Reads one value, and nothing behind it. */
  whole(): Json | null {
    const value = this.value();
    this.blanks();
    if (this.error == "" && this.at < this.text.length) this.no("nothing more");
    return this.error == "" ? value : null;
  }

  private no(wanted: string): Json {
    if (this.error == "") this.error = `no JSON: character ${this.at}: it wants ${wanted}`;
    return Json.nothing();
  }

  private peek(): i32 {
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : -1;
  }

  private blanks(): void {
    for (;;) {
      const code = this.peek();
      if (code != 0x20 && code != 0x0a && code != 0x0d && code != 0x09) return;
      this.at++;
    }
  }

  /** Takes a character if it is the next one. */
  private takes(code: i32): bool {
    const is = this.peek() == code;
    if (is) this.at++;
    return is;
  }

  private value(): Json {
    this.blanks();
    const code = this.peek();
    if (code == 0x22) return Json.text(this.string());
    if (code == 0x2d || (code >= 0x30 && code <= 0x39)) return this.number();
    if (code == 0x7b || code == 0x5b) {
      if (this.depth == DEPTH) {
        if (this.error == "") this.error = `it has more than ${DEPTH} values within each other`;
        return Json.nothing();
      }
      this.at++;
      this.depth++;
      const json = code == 0x7b ? this.object() : this.list();
      this.depth--;
      return json;
    }
    if (this.word("null")) return Json.nothing();
    if (this.word("true")) return Json.bool(true);
    if (this.word("false")) return Json.bool(false);
    return this.no("a value");
  }

  private word(word: string): bool {
    if (this.text.substr(this.at, word.length) != word) return false;
    this.at += word.length;
    return true;
  }

  private object(): Json {
    const json = Json.object();
    this.blanks();
    if (this.takes(0x7d)) return json;
    while (this.error == "") {
      this.blanks();
      if (this.peek() != 0x22) return this.no("a key");
      const key = this.string();
      this.blanks();
      if (!this.takes(0x3a)) return this.no("a colon");
      json.with(key, this.value());
      this.blanks();
      if (this.takes(0x7d)) break;
      if (!this.takes(0x2c)) return this.no("a comma or }");
    }
    return json;
  }

  private list(): Json {
    const items = new Array<Json>(0);
    this.blanks();
    if (this.takes(0x5d)) return Json.list(items);
    while (this.error == "") {
      items.push(this.value());
      this.blanks();
      if (this.takes(0x5d)) break;
      if (!this.takes(0x2c)) return this.no("a comma or ]");
    }
    return Json.list(items);
  }

  private number(): Json {
    const begin = this.at;
    this.takes(0x2d);
    if (!this.takes(0x30)) this.digits();
    if (this.takes(0x2e)) this.digits();
    if (this.takes(0x65) || this.takes(0x45)) {
      if (!this.takes(0x2b)) this.takes(0x2d);
      this.digits();
    }
    return Json.digits(this.text.substring(begin, this.at));
  }

  private digits(): void {
    const begin = this.at;
    while (this.peek() >= 0x30 && this.peek() <= 0x39) this.at++;
    if (this.at == begin) this.no("a digit");
  }

  private string(): string {
    this.at++;
    let plain = this.at;
    const parts: string[] = [];
    while (this.error == "") {
      const code = this.peek();
      if (code >= 0x20 && code != 0x22 && code != 0x5c) {
        this.at++;
        continue;
      }
      const part = this.text.substring(plain, this.at);
      if (code == 0x22) {
        this.at++;
        if (parts.length == 0) return part;
        parts.push(part);
        return parts.join("");
      }
      if (code != 0x5c) break;
      this.at++;
      parts.push(part);
      parts.push(this.escape());
      plain = this.at;
    }
    this.no("the end of a string");
    return "";
  }

  /** Reads what follows a backslash. */
  private escape(): string {
    const code = this.peek();
    if (code >= 0) this.at++;
    switch (code) {
      case 0x22:
      case 0x5c:
      case 0x2f:
        return String.fromCharCode(code);
      case 0x6e:
        return "\n";
      case 0x74:
        return "\t";
      case 0x72:
        return "\r";
      case 0x62:
        return "\b";
      case 0x66:
        return "\f";
      case 0x75:
        return String.fromCharCode(this.hex());
      default:
        this.no("an escape");
        return "";
    }
  }

  private hex(): i32 {
    let value = 0;
    for (let i = 0; i < 4; i++) {
      const code = this.peek() | 0x20; // letters in lower case
      const digit = code >= 0x61 && code <= 0x66 ? code - 0x57 : code >= 0x30 && code <= 0x39 ? code - 0x30 : -1;
      if (this.peek() < 0x30 || digit < 0) {
        this.no("four hexadecimal digits");
        return 0;
      }
      value = value * 16 + digit;
      this.at++;
    }
    return value;
  }
}
