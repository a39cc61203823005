/**
 * The guest SDK for AssemblyScript: with it, a hook or a tool for Wharf is a
 * plain function.
 *
 * ```ts
 * import { ToolCall, Verdict } from "wharf/assembly";
 *
 * export function before_execute_tool(call: ToolCall): Verdict | null {
 *   if (call.tool == "exec") return Verdict.deny("no commands today");
 *   return null;
 * }
 * ```
 *
 * `assembly/index.ts` of an extension exports a function for each hook point and
 * each tool that `extension.toml` declares, under its name, in which `_` stands for
 * each `-`. `wharf ext build` writes the module's exports from that, and refuses
 * what is declared and not exported, and the other way round.
 *
 * A guest sees no files, no network, no arguments and no environment. `config`,
 * `kvGet` and the functions beside them are what the host does for it: each gives
 * a `Reply` with a value or an error, or the error alone. What is thrown, or
 * fails an assertion, is logged with its place and fails the call; the next one
 * starts with a fresh instance.
 *
 * @module
 */

export * from "./agent";
export * from "./host";
export * from "./json";
export * from "./payload";
export * from "./points";
export * from "./tool";
export * from "./verdict";
