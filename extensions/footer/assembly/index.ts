// The extension footer puts a footer under the final answer, once.

import { config, Kind, Level, log, sessionInfo, Text, Verdict } from "wharf/assembly";
import { today } from "./clock";

const USUAL = "\n\n---\nWritten by {model}, {date}";

export function finalize_content(answer: Text): Verdict | null {
  const wanted = config("text");
  if (wanted.error !== null) return Verdict.fail(wanted.problem);
  if (!wanted.value.isNull && wanted.value.kind != Kind.Text) return Verdict.fail("text in the configuration is no text");
  const footer = filled(wanted.value.asText(USUAL), answer.turn);
  const text = answer.text;
  if (text.trim() == "" || footer == "" || text.trimEnd().endsWith(footer.trim())) return null;
  return Verdict.replaceText(text.trimEnd() + footer);
}

/** The footer with what is known in the place of {model}, {session}, {date} and {turn}. */
function filled(template: string, turn: i64): string {
  let text = template.replaceAll("{turn}", turn.toString());
  if (text.includes("{date}")) text = text.replaceAll("{date}", today());
  if (!text.includes("{model}") && !text.includes("{session}")) return text;
  const info = sessionInfo();
  if (info.error !== null) log(Level.Warning, info.problem);
  const model = info.value.model == "" ? "a model" : info.value.model;
  return text.replaceAll("{model}", model).replaceAll("{session}", info.value.id);
}
