/** Asks for each host operation once, and tells what came. */

import * as wharf from "wharf/assembly";
import { Json, ToolInput, ToolOutput } from "wharf/assembly";

export function tour(_: ToolInput): ToolOutput {
  const told: string[] = [];
  for (let i = 0; i < stops.length; i++) {
    const stop = stops[i]();
    told.push(`${names[i]}: ${stop.error == null ? stop.value : stop.error!.code}\n`);
  }
  return ToolOutput.text(told.join(""));
}

const names = [
  "config", "kv_set", "kv_get", "kv_list", "kv_delete", "http", "read_file", "read_file_at", "list_dir", "stat_file", "write_file",
  "call_tool", "exec", "session_info", "messages", "complete", "env and emit",
];

type Told = wharf.Reply<string>;

const stops: (() => Told)[] = [
  () => {
    const reply = wharf.config("greeting");
    return new wharf.Reply(reply.value.toString(), reply.error);
  },
  () => new wharf.Reply("done", wharf.kvSet("a", Json.object().with("n", Json.int(1)))),
  () => {
    const reply = wharf.kvGet("a");
    return new wharf.Reply(reply.value.toString(), reply.error);
  },
  () => {
    const reply = wharf.kvList("");
    return new wharf.Reply(reply.value.join(","), reply.error);
  },
  () => new wharf.Reply("done", wharf.kvDelete("a")),
  () => {
    const request = new wharf.HttpRequest("https://api.example.com/x");
    request.method = "POST";
    request.headers.set("Accept", "text/plain");
    request.body = String.UTF8.encode("hé");
    request.secrets.push("TOKEN");
    const reply = wharf.http(request);
    const got = reply.value;
    const one = got.headers.has("x-one") && got.headers.get("x-one") == "1";
    return new wharf.Reply(`${got.status} ${got.text} ${got.url} ${one}`, reply.error);
  },
  () => {
    const reply = wharf.readFile("a.txt");
    return new wharf.Reply(String.UTF8.decode(reply.value), reply.error);
  },
  () => {
    const reply = wharf.readFileAt("a.txt", 2, 3); // from within a letter: no text
    const part = Uint8Array.wrap(reply.value.bytes);
    return new wharf.Reply(`[${part.join(", ")}] of ${reply.value.size}`, reply.error);
  },
  () => {
    const reply = wharf.listDir(".");
    return new wharf.Reply(reply.value.map<string>((e) => e.name + " " + e.kind).join(","), reply.error);
  },
  () => {
    const reply = wharf.statFile("a.txt");
    return new wharf.Reply(`${reply.value.size} ${reply.value.mode.length} ${reply.value.mtime.length}`, reply.error);
  },
  () => new wharf.Reply("done", wharf.writeFile("b.txt", "two\n")),
  () => {
    const reply = wharf.callTool("grep", Json.object().with("pattern", Json.text("x")));
    return new wharf.Reply(`${reply.value.content} ${reply.value.isError}${reply.value.code}`, reply.error);
  },
  () => {
    const reply = wharf.exec("make all", 1500);
    return new wharf.Reply(`${reply.value.exit} ${reply.value.stdout} ${reply.value.stderr}`, reply.error);
  },
  () => {
    const reply = wharf.sessionInfo();
    return new wharf.Reply(`${reply.value.id} ${reply.value.cwd} ${reply.value.model} ${reply.value.turn}`, reply.error);
  },
  () => {
    const reply = wharf.messages(1);
    return new wharf.Reply(reply.value.map<string>((m) => m.role + " " + m.content).join(","), reply.error);
  },
  () => {
    const reply = wharf.complete("why?", 10);
    const usage = reply.value.usage;
    return new wharf.Reply(`${reply.value.text} ${usage.inputTokens} ${usage.outputTokens}`, reply.error);
  },
  () => {
    const error = wharf.emit("toured", Json.list([Json.int(1), Json.int(2)]));
    if (error !== null) return new wharf.Reply("", error);
    const reply = wharf.env("LANG");
    return new wharf.Reply(reply.value === null ? "unset" : reply.value!, reply.error);
  },
];
