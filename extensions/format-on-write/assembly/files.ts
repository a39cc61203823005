// Which files a call wrote, and how they are named in a command.

import { DoneCall } from "wharf/assembly";

const heads = ["*** Add File: ", "*** Update File: ", "*** Move to: ", "+++ b/"];

/** The files that a call wrote. */
export function written(call: DoneCall): string[] {
  if (call.tool != "apply_patch") {
    const path = call.arguments.str("path");
    return path == "" ? [] : [path];
  }
  const patch = call.arguments.str("patch");
  const lines = (patch == "" ? call.arguments.str("input") : patch).split("\n");
  const files: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    for (let j = 0; j < heads.length; j++) {
      if (!lines[i].startsWith(heads[j])) continue;
      const file = lines[i].substring(heads[j].length).trim();
      if (file != "" && !files.includes(file)) files.push(file);
    }
  }
  return files;
}

/**
 * A command of these words and a file, each in quotes where it needs them; empty
 * if one cannot be quoted so that there is nothing in it to expand.
 */
export function command(argv: string[], file: string): string {
  const words = argv.slice(0);
  words.push(file.startsWith("-") ? "./" + file : file);
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (word == "" || word.includes("'") || unprintable(word)) return "";
    if (!plain(word)) words[i] = `'${word}'`;
  }
  return words.join(" ");
}

function plain(word: string): bool {
  for (let i = 0; i < word.length; i++) {
    const c = word.charCodeAt(i);
    const letter = (c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a) || (c >= 0x30 && c <= 0x39);
    if (!letter && !"-_./".includes(word.charAt(i))) return false;
  }
  return true;
}

function unprintable(word: string): bool {
  for (let i = 0; i < word.length; i++) if (word.charCodeAt(i) < 0x20 || word.charCodeAt(i) == 0x7f) return true;
  return false;
}
