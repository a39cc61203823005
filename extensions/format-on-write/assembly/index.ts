// The extension format-on-write runs the project's formatter on each file that
// the model writes.

import { config, DoneCall, exec, Json, Kind, Level, log, readFile, Verdict } from "wharf/assembly";
import { command, written } from "./files";

/** How many files of one call are looked after, and how long a formatter may take. */
const MOST_FILES = 20;
const TIME_MS = 10_000;

/** The formatters by the ending of a file's name, unless the configuration says otherwise. */
const usual = new Map<string, string>();
usual.set("go", "gofmt -w");
usual.set("rs", "rustfmt --edition 2021");
usual.set("py", "black --quiet");
usual.set("zig", "zig fmt");
usual.set("sh", "shfmt -w");
usual.set("tf", "terraform fmt");
each(["c", "h", "cc", "cpp", "hpp"], "clang-format -i");
each(["js", "jsx", "ts", "tsx", "mjs", "cjs", "css", "scss", "html", "json", "md", "yaml", "yml", "vue"], "prettier --write");

function each(endings: string[], formatter: string): void {
  for (let i = 0; i < endings.length; i++) usual.set(endings[i], formatter);
}

/** Formatters that turned out not to be there: that is told once. */
const absent = new Set<string>();

export function after_execute_tool(call: DoneCall): Verdict | null {
  if (call.result.isError) return null;
  const own = config("formatters");
  if (own.error !== null) return Verdict.fail(own.problem);
  if (!own.value.isNull && own.value.kind != Kind.Object) return Verdict.fail("formatters in the configuration is no table");
  const files = written(call);
  const told: string[] = [];
  for (let i = 0; i < files.length && i < MOST_FILES; i++) {
    const argv = formatter(files[i], own.value);
    if (argv.length == 0) continue;
    const said = format(argv, files[i]);
    if (said != "") told.push(said);
  }
  return told.length == 0 ? null : Verdict.addContext(told.join("\n"));
}

/** The words of the formatter for a file; none if it has none. */
function formatter(file: string, own: Json): string[] {
  const name = file.substring(file.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  if (dot <= 0) return [];
  const ending = name.substring(dot + 1).toLowerCase();
  const given = own.get(ending);
  if (given.isNull) return usual.has(ending) ? usual.get(ending).split(" ") : [];
  const words: string[] = [];
  for (let i = 0; i < given.items.length; i++) words.push(given.items[i].asText());
  return words;
}

/** Formats a file; gives what the model should know of it. */
function format(argv: string[], file: string): string {
  if (absent.has(argv[0])) return "";
  const line = command(argv, file);
  if (line == "") {
    log(Level.Warning, `${file} is not formatted: its name cannot be quoted`);
    return "";
  }
  const before = content(file);
  const reply = exec(line, TIME_MS);
  if (reply.error !== null) {
    log(Level.Warning, `${file} is not formatted: ${reply.problem}`);
    return "";
  }
  const ended = reply.value;
  if (ended.exit == 127) {
    absent.add(argv[0]);
    log(Level.Warning, `${argv[0]} is not installed: files such as ${file} are not formatted`);
    return "";
  }
  if (ended.exit != 0) {
    const said = (ended.stderr.trim() == "" ? ended.stdout : ended.stderr).trim();
    return `${argv[0]} could not format ${file} (exit status ${ended.exit}): ${said.length > 1000 ? said.substring(0, 1000) + "…" : said}`;
  }
  const after = content(file);
  return before == after ? "" : `${argv[0]} formatted ${file}: read it again before you edit it`;
}

/** A file's bytes as a text, to be compared; empty if it cannot be read. */
function content(file: string): string {
  const reply = readFile(file);
  if (reply.error === null) return String.UTF8.decode(reply.value);
  log(Level.Debug, reply.problem);
  return "";
}
