import { Json, Kind } from "./json";

/** What a handler is given, read out of its JSON. */
export abstract class Payload {
  /** Takes the values of its keys. */
  abstract fill(keys: Keys): void;
}

/**
 * The keys of an object, of which payloads are filled. One that is not there has
 * a value of nothing; `wrong` names one that does not hold what it should.
 */
export class Keys {
  wrong: string = "";

  constructor(private json: Json) {}

  private take(key: string, kind: Kind): Json {
    const value = this.json.get(key);
    if (value.kind != kind && !value.isNull) this.wrong = key;
    return value;
  }

  text(key: string): string {
    return this.take(key, Kind.Text).asText();
  }

  int(key: string): i64 {
    const value = this.take(key, Kind.Number);
    if (value.kind == Kind.Number && value.asInt(1) != value.asInt(2)) this.wrong = key;
    return value.asInt();
  }

  number(key: string): f64 {
    return this.take(key, Kind.Number).asNumber();
  }

  bool(key: string): bool {
    return this.take(key, Kind.Bool).asBool();
  }

  any(key: string): Json {
    return this.json.get(key);
  }

  texts(key: string): string[] {
    const items = this.take(key, Kind.List).items;
    const texts: string[] = [];
    for (let i = 0; i < items.length; i++) {
      if (items[i].kind != Kind.Text) this.wrong = key;
      texts.push(items[i].asText());
    }
    return texts;
  }

  object<T extends Payload>(key: string): T {
    return this.filled<T>(key, this.take(key, Kind.Object));
  }

  objects<T extends Payload>(key: string): T[] {
    const items = this.take(key, Kind.List).items;
    const objects: T[] = [];
    for (let i = 0; i < items.length; i++) {
      if (items[i].kind != Kind.Object) this.wrong = key;
      objects.push(this.filled<T>(key, items[i]));
    }
    return objects;
  }

  private filled<T extends Payload>(key: string, json: Json): T {
    const keys = new Keys(json);
    const value = instantiate<T>();
    value.fill(keys);
    if (keys.wrong != "") this.wrong = key;
    return value;
  }
}

/** Says where in a session a handler is called. */
export class At extends Payload {
  sessionId: string = "";
  turn: i64 = 0;
  step: i64 = 0;

  fill(keys: Keys): void {
    this.sessionId = keys.text("session_id");
    this.turn = keys.int("turn");
    this.step = keys.int("step");
  }
}

/** A call that the model made. */
export class ToolCall extends At {
  callId: string = "";
  tool: string = "";
  /** An object. */
  arguments: Json = Json.nothing();

  fill(keys: Keys): void {
    super.fill(keys);
    this.callId = keys.text("call_id");
    this.tool = keys.text("tool");
    this.arguments = keys.any("arguments");
  }
}

/** The result of a call. */
export class ToolResult extends Payload {
  content: string = "";
  isError: bool = false;
  /** Which kind of failure it was; often empty. */
  code: string = "";

  fill(keys: Keys): void {
    this.content = keys.text("content");
    this.isError = keys.bool("is_error");
    this.code = keys.text("code");
  }
}

/** A call with its result. */
export class DoneCall extends ToolCall {
  result: ToolResult = new ToolResult();

  fill(keys: Keys): void {
    super.fill(keys);
    this.result = keys.object<ToolResult>("result");
  }
}

/** A text that a handler judges: a prompt, or the final answer. */
export class Text extends At {
  text: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.text = keys.text("text");
  }
}

/** How a turn ended. */
export class End extends Text {
  reason: string = "";

  fill(keys: Keys): void {
    super.fill(keys);
    this.reason = keys.text("reason");
  }
}

/** Tokens that were used. */
export class Usage extends Payload {
  inputTokens: i64 = 0;
  outputTokens: i64 = 0;
  /** The part of the input that came out of a cache. */
  cacheReadTokens: i64 = 0;
  /** The part of the output that was reasoning. */
  reasoningTokens: i64 = 0;

  fill(keys: Keys): void {
    this.inputTokens = keys.int("input_tokens");
    this.outputTokens = keys.int("output_tokens");
    this.cacheReadTokens = keys.int("cache_read_input_tokens");
    this.reasoningTokens = keys.int("reasoning_tokens");
  }
}

/** What a turn may use up; 0 is not limited. */
export class Budget extends Payload {
  tokens: i64 = 0;
  cost: f64 = 0;
  timeMs: i64 = 0;

  fill(keys: Keys): void {
    this.tokens = keys.int("tokens");
    this.cost = keys.number("cost");
    this.timeMs = keys.int("time_ms");
  }
}
