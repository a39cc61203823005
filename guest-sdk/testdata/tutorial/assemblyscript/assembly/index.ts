import { config, Json, kvGet, kvSet, Level, log, ToolCall, Verdict } from "wharf/assembly";

export function before_execute_tool(call: ToolCall): Verdict | null {
  const command = call.arguments.str("command");
  if (!command.includes("git push")) return null; // no opinion

  const remote = config("remote").value.asText();
  if (remote != "" && command.includes(remote)) return null;

  const reason = "pushing is the user's: say what you would push";
  const known = kvGet("refused");
  if (known.error !== null) {
    // it has no memory, and refuses all the same
    log(Level.Warning, `not counted: ${known.problem}`);
    return Verdict.deny(reason);
  }
  const times = known.value.asInt() + 1;
  kvSet("refused", Json.int(times));
  return Verdict.deny(`${reason} (refused ${times} times)`);
}
