/**
 * What an extension has the agent do is judged like a call of the model's: an
 * error with the code DENIED says that other extensions, the permission rules or
 * the sandbox refused it.
 *
 * @module
 */

import { bytes, OperationError, Reply, run } from "./host";
import { Json } from "./json";
import { Keys, ToolResult, Usage } from "./payload";

/**
 * Calls a tool of the session. The arguments are an object. A failure of the
 * tool's own is a result with `isError`. The manifest must ask for the tool under
 * `tools`, and the user grant it.
 */
export function callTool(name: string, args: Json): Reply<ToolResult> {
  const reply = run("tool.call", Json.object().with("name", Json.text(name)).with("arguments", args));
  const result = new ToolResult();
  result.fill(new Keys(reply.value));
  return new Reply(result, reply.error);
}

/** How a command ended. */
export class Command {
  constructor(
    /** 0 if it did what it should. */
    readonly exit: i64,
    readonly stdout: string,
    readonly stderr: string,
  ) {}
}

/**
 * Runs one simple command in the session's sandbox: no pipes, variables or
 * globs. One that is not done in time is ended, and an error; 0 means the limit
 * of the tool `exec`. The manifest must ask for `exec`, and the user grant it.
 */
export function exec(command: string, timeoutMs: i64 = 0): Reply<Command> {
  const reply = run("exec.run", Json.object().with("command", Json.text(command)).with("timeout_ms", Json.int(timeoutMs)));
  const got = reply.value;
  return new Reply(new Command(got.get("exit").asInt(), got.str("stdout"), got.str("stderr")), reply.error);
}

/** A part of a file, and how large the whole is. */
export class Part {
  constructor(
    readonly bytes: ArrayBuffer,
    readonly size: i64,
  ) {}
}

/**
 * Reads a file whole. Paths are relative to the workspace, here and in the
 * functions below; the manifest must ask for `fs`, and the user grant it.
 */
export function readFile(path: string): Reply<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let have = 0;
  let size: i64 = 0;
  do {
    const reply = readFileAt(path, have);
    if (reply.error !== null) return new Reply(new ArrayBuffer(0), reply.error);
    const part = Uint8Array.wrap(reply.value.bytes);
    if (part.length == 0) break;
    parts.push(part);
    have += part.length;
    size = reply.value.size;
  } while (<i64>have < size);
  const all = new Uint8Array(have);
  for (let i = 0, at = 0; i < parts.length; at += parts[i++].length) all.set(parts[i], at);
  return new Reply<ArrayBuffer>(all.buffer, null);
}

/** Reads up to so many bytes of a file, 0 for as many as one call gives. */
export function readFileAt(path: string, offset: i64, limit: i64 = 0): Reply<Part> {
  const request = Json.object().with("path", Json.text(path)).with("offset", Json.int(offset)).with("limit", Json.int(limit));
  const reply = run("fs.read", request);
  return new Reply(new Part(bytes(reply.value, "content", "content_base64"), reply.value.get("size").asInt()), reply.error);
}

/** A name in a folder. */
export class Entry {
  constructor(
    readonly name: string,
    /** file, folder, link or other. */
    readonly kind: string,
  ) {}
}

/** Lists a folder, sorted by name. */
export function listDir(path: string): Reply<Entry[]> {
  const reply = run("fs.list", Json.object().with("path", Json.text(path)));
  const items = reply.value.get("entries").items;
  const entries: Entry[] = [];
  for (let i = 0; i < items.length; i++) entries.push(new Entry(items[i].str("name"), items[i].str("kind")));
  return new Reply(entries, reply.error);
}

/** A description of a file or folder. */
export class FileInfo {
  constructor(
    readonly size: i64,
    /** Such as -rw-r--r--. */
    readonly mode: string,
    /** When it was changed, as 2026-11-30T09:00:00Z. */
    readonly mtime: string,
  ) {}
}

/** Describes what a path leads to. */
export function statFile(path: string): Reply<FileInfo> {
  const reply = run("fs.stat", Json.object().with("path", Json.text(path)));
  const got = reply.value;
  return new Reply(new FileInfo(got.get("size").asInt(), got.str("mode"), got.str("mtime")), reply.error);
}

/** Puts a text in the place of a file, whole or not at all, and makes the folders above it. */
export function writeFile(path: string, content: string): OperationError | null {
  return run("fs.write", Json.object().with("path", Json.text(path)).with("content", Json.text(content))).error;
}

/** A description of the session that a guest runs in. */
export class Session {
  constructor(
    readonly id: string,
    /** The folder that it works in. */
    readonly cwd: string,
    readonly model: string,
    readonly turn: i64,
  ) {}
}

/** Describes the session. The manifest must ask for `session`, and the user grant it. */
export function sessionInfo(): Reply<Session> {
  const reply = run("session.info", Json.object());
  const got = reply.value;
  return new Reply(new Session(got.str("id"), got.str("cwd"), got.str("model"), got.get("turn").asInt()), reply.error);
}

/** A message as the model gets to see it. */
export class Message {
  /** user, assistant or tool. */
  role: string = "";
  content: string = "";
  /** Of the assistant. */
  calls: MessageCall[] = [];
  /** The call that a tool's message answers. */
  callId: string = "";
  /** Of a tool's message. */
  isError: bool = false;
}

/** A call that the model made. */
export class MessageCall {
  constructor(
    readonly callId: string,
    readonly name: string,
    /** As the model wrote them, not necessarily JSON. */
    readonly arguments: string,
  ) {}
}

/**
 * The last messages of the session, 0 for all, the oldest first; where there is
 * no room for so many, fewer. The manifest must ask for `session`, and the user
 * grant it.
 */
export function messages(last: i64 = 0): Reply<Message[]> {
  const reply = run("session.messages", Json.object().with("last", Json.int(last)));
  const items = reply.value.get("messages").items;
  const all: Message[] = [];
  for (let i = 0; i < items.length; i++) all.push(message(items[i]));
  return new Reply(all, reply.error);
}

function message(json: Json): Message {
  const m = new Message();
  m.role = json.str("role");
  m.content = json.str("content");
  m.callId = json.str("call_id");
  m.isError = json.get("is_error").asBool();
  const calls = json.get("calls").items;
  for (let i = 0; i < calls.length; i++) {
    m.calls.push(new MessageCall(calls[i].str("call_id"), calls[i].str("name"), calls[i].str("arguments")));
  }
  return m;
}

/** What the model answered. */
export class Completion {
  constructor(
    readonly text: string,
    readonly usage: Usage,
  ) {}
}

/**
 * Asks the session's model one question. The tokens are those of the answer; 0
 * is 1024. The manifest must ask for `llm`, and the user grant it.
 */
export function complete(prompt: string, maxTokens: i64 = 0): Reply<Completion> {
  const reply = run("llm.complete", Json.object().with("prompt", Json.text(prompt)).with("max_tokens", Json.int(maxTokens)));
  const usage = new Usage();
  usage.fill(new Keys(reply.value.get("usage")));
  return new Reply(new Completion(reply.value.str("text"), usage), reply.error);
}

/** A variable of Wharf's environment, null if it is not set. The manifest must ask for it under `env`, and the user grant it. */
export function env(name: string): Reply<string | null> {
  const reply = run("env.get", Json.object().with("name", Json.text(name)));
  const value = reply.value.get("value");
  return new Reply<string | null>(value.isNull ? null : value.asText(), reply.error);
}

/** Writes an event of the extension's own to the session's log. The manifest must ask for `events`, and the user grant it. */
export function emit(name: string, data: Json): OperationError | null {
  return run("event.emit", Json.object().with("name", Json.text(name)).with("data", data)).error;
}
