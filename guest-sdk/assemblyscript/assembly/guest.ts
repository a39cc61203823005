/**
 * Where the guest meets the host: memory, imports, and what the exports do that
 * `wharf ext build` writes. An extension's own code needs none of it.
 *
 * @module
 */

import { Json, JsonReader } from "./json";
import { Keys, Payload } from "./payload";
import { ToolInput, ToolOutput } from "./tool";
import { Verdict } from "./verdict";

// @ts-ignore: a decorator of AssemblyScript's
@external("wharf_v1", "call")
declare function hostCall(op: usize, opLength: i32, request: usize, requestLength: i32): u64;

// @ts-ignore: a decorator of AssemblyScript's
@external("wharf_v1", "read")
declare function hostRead(to: usize): void;

// @ts-ignore: a decorator of AssemblyScript's
@external("wharf_v1", "log")
declare function hostLog(level: u32, text: usize, length: i32): void;

/** Where the host writes the next payload; as a global, the collector leaves it alone. */
let payload: ArrayBuffer = new ArrayBuffer(0);

/** What the host reads once a handler has returned. */
let answer: ArrayBuffer = payload;

/** What a handler said that it answers, whatever it returns. */
let exactly: string | null = null;

/** Gives the host room for a payload, good until it asks again. */
export function alloc(length: i32): usize {
  if (length < 0) return 0; // the host takes it for a failure
  payload = new ArrayBuffer(max(length, 1));
  return changetype<usize>(payload);
}

/** Has the current handler answer this JSON, whatever it returns: for what this SDK has no types for. */
export function answerExactly(json: string): void {
  exactly = json;
}

/** Runs a host operation by its name, with the JSON of a request. */
export function operate(operation: string, request: string): Response {
  const op = utf8(operation);
  const body = utf8(request);
  const result = hostCall(changetype<usize>(op), op.byteLength, changetype<usize>(body), body.byteLength);
  const response = new ArrayBuffer(<i32>result);
  if (response.byteLength > 0) hostRead(changetype<usize>(response));
  return new Response(<u32>(result >> 32), String.UTF8.decode(response));
}

/** What the host responds: its status and its JSON, as the page ABI.md has them. */
export class Response {
  constructor(
    readonly status: u32,
    readonly text: string,
  ) {}
}

/** Writes a line to the session's log. */
export function logLine(level: u32, text: string): void {
  const line = utf8(text);
  hostLog(level, changetype<usize>(line), line.byteLength);
}

/** What asc calls where something is thrown, or fails an assertion: it is logged with its place, and ends the call. */
export function failed(message: string | null, file: string | null, line: u32, column: u32): void {
  const what = message === null ? "it failed" : message;
  logLine(3, file === null ? what : `${file}:${line}:${column}: ${what}`);
  unreachable();
}

/** Asks a handler for its verdict. */
export function judge<P extends Payload>(at: usize, length: i32, handler: (payload: P) => Verdict | null): u64 {
  const given = read<P>(at, length);
  if (given === null) return failure(problem);
  exactly = null;
  const verdict = handler(given);
  return verdict === null ? answered("") : answered(verdict.encode());
}

/** Shows a handler what happens. */
export function watch<P extends Payload>(at: usize, length: i32, handler: (payload: P) => void): u64 {
  const given = read<P>(at, length);
  if (given === null) return failure(problem);
  exactly = null;
  handler(given);
  return answered("");
}

/** Shows a handler plain text. */
export function hear(at: usize, length: i32, handler: (text: string) => void): u64 {
  exactly = null;
  handler(String.UTF8.decodeUnsafe(at, length));
  return answered("");
}

/** Runs the tool that a payload names. */
export function callTool(at: usize, length: i32, names: string[], tools: ((input: ToolInput) => ToolOutput)[]): u64 {
  const input = read<ToolInput>(at, length);
  if (input === null) return failure(problem);
  const i = names.indexOf(input.name);
  if (i < 0) return failure(`the code has no tool ${input.name}, only ${names.join(", ")}`);
  exactly = null;
  return answered(tools[i](input).encode());
}

/** Why a payload could not be read. */
let problem: string = "";

function read<P extends Payload>(at: usize, length: i32): P | null {
  const reader = new JsonReader(String.UTF8.decodeUnsafe(at, length));
  const json = reader.whole();
  if (json === null) {
    problem = "payload: " + reader.error;
    return null;
  }
  const keys = new Keys(json);
  const value = instantiate<P>();
  value.fill(keys);
  problem = `payload: "${keys.wrong}" is not what it should be`;
  return keys.wrong == "" ? value : null;
}

function failure(error: string): u64 {
  exactly = null;
  return answered(Json.object().with("error", Json.text(error)).toString());
}

function answered(json: string): u64 {
  const instead = exactly;
  answer = utf8(instead === null ? json : instead);
  return answer.byteLength == 0 ? 0 : ((<u64>changetype<usize>(answer)) << 32) | (<u64>answer.byteLength);
}

/** The UTF-8 of a text; half a surrogate pair becomes U+FFFD. */
function utf8(text: string): ArrayBuffer {
  return String.UTF8.encode(text, false, String.UTF8.ErrorMode.REPLACE);
}
