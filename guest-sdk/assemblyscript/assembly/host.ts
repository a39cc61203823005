import { logLine, operate } from "./guest";
import { Json, JsonReader } from "./json";

export { answerExactly, operate, Response } from "./guest";

/** An operation that the host did not do. */
export class OperationError {
  constructor(
    /** NOT_GRANTED, DENIED, BAD_REQUEST, FAILED, OVER_LIMIT or UNKNOWN_OPERATION. */
    readonly code: string,
    /** Says what to do. */
    readonly message: string,
  ) {}
}

/** What an operation gives: a value, or an error and a value of nothing. */
export class Reply<T> {
  constructor(
    readonly value: T,
    readonly error: OperationError | null,
  ) {}

  /** What went wrong; empty if nothing did. */
  get problem(): string {
    const error = this.error;
    return error === null ? "" : error.message;
  }
}

/** Runs an operation of the host's, and reads the response. */
export function run(operation: string, request: Json): Reply<Json> {
  const response = operate(operation, request.toString());
  const reader = new JsonReader(response.text);
  const json = reader.whole();
  if (json === null) {
    return new Reply(Json.nothing(), new OperationError("FAILED", `${operation}: status ${response.status}: ${reader.error}`));
  }
  if (response.status == 0) return new Reply<Json>(json, null);
  return new Reply(Json.nothing(), new OperationError(json.str("code"), json.str("message")));
}

/** One value of the user's configuration, from `[extensions.NAME.config]`; null if there is none. */
export function config(key: string): Reply<Json> {
  return value("config.get", key);
}

/** What `kvSet` kept under a key; null if there is nothing. The manifest must ask for `kv`, and the user grant it. */
export function kvGet(key: string): Reply<Json> {
  return value("kv.get", key);
}

function value(operation: string, key: string): Reply<Json> {
  const reply = run(operation, Json.object().with("key", Json.text(key)));
  return new Reply(reply.value.get("value"), reply.error);
}

/** Keeps a value, anything but null, for this and later sessions. */
export function kvSet(key: string, value: Json): OperationError | null {
  return run("kv.set", Json.object().with("key", Json.text(key)).with("value", value)).error;
}

/** Takes a key away; it is no error if there was none. */
export function kvDelete(key: string): OperationError | null {
  return run("kv.delete", Json.object().with("key", Json.text(key))).error;
}

/** The keys that begin with a prefix, sorted. */
export function kvList(prefix: string): Reply<string[]> {
  const reply = run("kv.list", Json.object().with("prefix", Json.text(prefix)));
  const items = reply.value.get("keys").items;
  const keys: string[] = [];
  for (let i = 0; i < items.length; i++) keys.push(items[i].asText());
  return new Reply(keys, reply.error);
}

/** A request that the host makes for the extension. */
export class HttpRequest {
  method: string = "GET";
  headers: Map<string, string> = new Map();
  body: ArrayBuffer = new ArrayBuffer(0);
  /** Names of secrets that the manifest binds to the URL's host. */
  secrets: string[] = [];

  constructor(public url: string) {}
}

/** The answer to an `HttpRequest`. */
export class HttpResponse {
  status: i64 = 0;
  /** By name in lower case. */
  headers: Map<string, string> = new Map();
  body: ArrayBuffer = new ArrayBuffer(0);
  /** Of the last hop, where there were redirects. */
  url: string = "";

  /** The body as text. */
  get text(): string {
    return String.UTF8.decode(this.body);
  }
}

/** Makes a request. The manifest must ask for `http`, and the user grant it; a status such as 404 is no error. */
export function http(request: HttpRequest): Reply<HttpResponse> {
  const headers = Json.object();
  const names = request.headers.keys();
  for (let i = 0; i < names.length; i++) headers.with(names[i], Json.text(request.headers.get(names[i])));
  const json = Json.object()
    .with("method", Json.text(request.method))
    .with("url", Json.text(request.url))
    .with("headers", headers)
    .with("secrets", Json.texts(request.secrets));
  if (request.body.byteLength > 0) json.with("body_base64", Json.text(encodeBase64(request.body)));
  const reply = run("http.fetch", json);
  const response = new HttpResponse();
  response.status = reply.value.get("status").asInt();
  response.url = reply.value.str("url");
  response.body = bytes(reply.value, "body", "body_base64");
  const got = reply.value.get("headers");
  for (let i = 0; i < got.keys.length; i++) response.headers.set(got.keys[i], got.items[i].asText());
  return new Reply(response, reply.error);
}

/** The bytes of a response, which has them as text or in base64. */
export function bytes(response: Json, plain: string, base64: string): ArrayBuffer {
  const encoded = response.get(base64);
  return encoded.isNull ? String.UTF8.encode(response.str(plain)) : decodeBase64(encoded.asText());
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function encodeBase64(buffer: ArrayBuffer): string {
  const from = Uint8Array.wrap(buffer);
  const out: string[] = [];
  for (let i = 0; i < from.length; i += 3) {
    const have = min(3, from.length - i);
    let word = 0;
    for (let j = 0; j < 3; j++) word = (word << 8) | (j < have ? from[i + j] : 0);
    for (let j = 0; j < 4; j++) out.push(j <= have ? BASE64.charAt((word >> (18 - 6 * j)) & 63) : "=");
  }
  return out.join("");
}

function decodeBase64(text: string): ArrayBuffer {
  let length = text.length;
  while (length > 0 && text.charCodeAt(length - 1) == 0x3d) length--;
  const out = new Uint8Array((length * 3) / 4);
  let word = 0;
  let bits = 0;
  let n = 0;
  for (let i = 0; i < length; i++) {
    word = (word << 6) | (sextet(text.charCodeAt(i)) & 63);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out[n++] = <u8>(word >> bits);
    }
  }
  return out.buffer;
}

function sextet(code: i32): i32 {
  if (code >= 0x41 && code <= 0x5a) return code - 0x41;
  if (code >= 0x61 && code <= 0x7a) return code - 0x61 + 26;
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 52;
  return code == 0x2b ? 62 : 63;
}

/** How grave a log line is. */
export enum Level {
  Debug,
  Info,
  Warning,
  Error,
}

/** Writes a line to the session's log. */
export function log(level: Level, text: string): void {
  logLine(level, text);
}
